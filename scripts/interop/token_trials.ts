import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import type { AppLogin, Client, ClientAuth, Members, Tokens } from "./client.ts";
import { alter, assertCaller, assertRefusal, assertRefused } from "./expect.ts";
import type { Stage } from "./stage.ts";

/** Tries one feature of a client against a stage; undefined if the client does not support it. */
export type Trial = (client: Client, stage: Stage) => (() => Promise<void>) | undefined;

const SCOPE = "consumer orders";

const INVALID_GRANT = /invalid_grant/;
/** RFC 6749 §5.2: some clients report only the 401 and its challenge. */
const INVALID_CLIENT = /invalid_client|\b401\b/;

/** RFC 8414 §3: everything is found by the issuer alone. */
export const tryDiscovery: Trial = (client, stage) => {
  const { discover } = client;
  return discover && (async () => assert.equal(await discover(), stage.issuer));
};

/** RFC 9728 §5: from a challenge to the authorization server. */
export const tryResourceMetadata: Trial = (client, stage) => {
  const { findServers } = client;
  return findServers && (async () => assert.deepEqual(await findServers(), [stage.issuer]));
};

/** RFC 6749 §4.4. */
export const tryCredentials = (auth: ClientAuth): Trial => (client, stage) => {
  const { credentials } = client;
  if (credentials === undefined || !client.auth.includes(auth)) return undefined;
  return async () => {
    const app = stage.app(auth);
    const tokens = await credentials(app, "orders");
    await assertCaller(stage, tokens, app.id, "orders");
    await assertRefusal(credentials({ ...app, secret: "wrong" }, "orders"), INVALID_CLIENT);
    await assertRefusal(credentials(app, "backend"), /invalid_scope/);
  };
};

/** RFC 7523 §2.2, for the same grant: the app's key, and no other. */
export const tryKeyedCredentials: Trial = (client, stage) => {
  const { keyedCredentials } = client;
  return keyedCredentials && (async () => {
    const app = stage.keyedApp;
    for (const scope of ["orders", "consumer"]) {
      await assertCaller(stage, await keyedCredentials(app, scope), app.id, scope);
    }
    const { privateKey: key } = await webcrypto.subtle.generateKey(
      { name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"],
    );
    await assertRefusal(keyedCredentials({ ...app, key }, "orders"), INVALID_CLIENT);
    await assertRefusal(keyedCredentials({ ...app, kid: "other" }, "orders"), INVALID_CLIENT);
  });
};

/** RFC 6749 §4.1 with RFC 7636. */
export const tryCode = (auth: ClientAuth): Trial => (client, stage) => {
  const { code } = client;
  if (code === undefined || !client.auth.includes(auth)) return undefined;
  return async () => {
    const tokens = await code(stage.app(auth), SCOPE);
    assert.ok(tokens.refreshToken, "no refresh token");
    await assertCaller(stage, tokens, stage.user.id, SCOPE);
  };
};

/** draft-ietf-oauth-client-id-metadata-document, RFC 9728 and RFC 8707. */
export const tryUnregistered: Trial = (client, stage) => {
  const { unregistered } = client;
  return unregistered && (async () => {
    const tokens = await unregistered(stage.documentUrl, SCOPE);
    assert.ok(tokens.refreshToken, "no refresh token");
    await assertCaller(stage, tokens, stage.user.id, SCOPE);
    const refused = unregistered(`${stage.documentUrl}x`, SCOPE);
    await assertRefusal(refused, /The page answered 400/);
  });
};

/** RFC 9207 §2.4: a response without the right `iss` is refused where the server promised it. */
export const tryIss: Trial = (client, stage) => {
  const { code, checksIss } = client;
  const [auth] = client.auth;
  if (code === undefined || auth === undefined || !checksIss) return undefined;
  return async () => {
    const app = stage.app(auth);
    await code(app, SCOPE, ({ searchParams }) => {
      assert.equal(searchParams.get("iss"), stage.issuer);
    });
    const without = code(app, SCOPE, ({ searchParams }) => searchParams.delete("iss"));
    await assertRefusal(without, /"iss"/);
    const other = code(app, SCOPE, ({ searchParams }) => {
      searchParams.set("iss", "https://other.example");
    });
    await assertRefusal(other, /"iss"/);
  };
};

/** RFC 6749 §4.3. */
export const tryPassword: Trial = (client, stage) => {
  const { password } = client;
  if (password === undefined) return undefined;
  return async () => {
    const { user } = stage;
    for (const app of confidentialApps(client, stage)) {
      const tokens = await password(app, user.username, user.password, SCOPE);
      await assertCaller(stage, tokens, user.id, SCOPE);
    }
    const [app] = confidentialApps(client, stage);
    assert.ok(app);
    await assertRefusal(password(app, user.username, "wrong password", SCOPE), INVALID_GRANT);
  };
};

/** RFC 8628, from the codes to the user's decision. */
export const tryDevice: Trial = (client, stage) => {
  const { device } = client;
  return device && (async () => {
    const { user, visit } = stage;
    for (const app of allApps(client, stage)) {
      const tokens = await device(app, SCOPE, (address) => visit(address));
      await assertCaller(stage, tokens, user.id, SCOPE);
    }
    const [app] = allApps(client, stage);
    assert.ok(app);
    const denied = device(app, SCOPE, (address) => visit(address, "deny"));
    await assertRefusal(denied, /access_denied/);
  });
};

/** RFC 6749 §6 with RFC 9700 §4.14.2: the token rotates, and its reuse ends the grant. */
export const tryRefresh: Trial = (client, stage) => {
  const { code, refresh } = client;
  if (code === undefined || refresh === undefined) return undefined;
  return async () => {
    for (const app of allApps(client, stage)) {
      const first = await code(app, SCOPE);
      const second = await refresh(app, refreshTokenOf(first));
      assert.notEqual(second.refreshToken, first.refreshToken, "the refresh token did not rotate");
      await assertCaller(stage, second, stage.user.id, SCOPE);
      // Until the new token is used, its response may be lost: the old token is still accepted.
      const third = await refresh(app, refreshTokenOf(second));
      await assertRefusal(refresh(app, refreshTokenOf(first)), INVALID_GRANT);
      await assertRefusal(refresh(app, refreshTokenOf(third)), INVALID_GRANT);
      await assertRefused(stage, third.accessToken);
    }
  };
};

/** RFC 6749 §6: the access token gets a narrower scope, the chain keeps its own. */
export const tryNarrowing: Trial = (client, stage) => {
  const { code, refresh } = client;
  if (code === undefined || refresh === undefined) return undefined;
  return async () => {
    for (const app of allApps(client, stage)) {
      const first = await code(app, SCOPE);
      const narrow = await refresh(app, refreshTokenOf(first), "orders");
      await assertCaller(stage, narrow, stage.user.id, "orders");
      const whole = await refresh(app, refreshTokenOf(narrow));
      await assertCaller(stage, whole, stage.user.id, SCOPE);
    }
  };
};

/** RFC 7009: an access token ends alone, a refresh token with all that came from it. */
export const tryRevocation: Trial = (client, stage) => {
  const { code, refresh, revoke } = client;
  if (code === undefined || refresh === undefined || revoke === undefined) return undefined;
  return async () => {
    for (const app of allApps(client, stage)) {
      const first = await code(app, SCOPE);
      await revoke(app, first.accessToken, "access_token");
      await assertRefused(stage, first.accessToken);
      const second = await refresh(app, refreshTokenOf(first));
      await revoke(app, refreshTokenOf(second), "refresh_token");
      await assertRefused(stage, second.accessToken);
      await assertRefusal(refresh(app, refreshTokenOf(second)), INVALID_GRANT);
      await revoke(app, "unknown", "access_token");
    }
  };
};

/** RFC 7662. */
export const tryIntrospection: Trial = (client, stage) => {
  const { code, introspect, revoke } = client;
  if (code === undefined || introspect === undefined || revoke === undefined) return undefined;
  return async () => {
    for (const app of confidentialApps(client, stage)) {
      const tokens = await code(app, SCOPE);
      const told: Members = await introspect(app, tokens.accessToken);
      assert.deepEqual(
        [told["active"], told["sub"], told["client_id"], told["scope"], told["iss"]],
        [true, stage.user.id, app.id, SCOPE, stage.issuer],
      );
      await revoke(app, tokens.accessToken, "access_token");
      assert.deepEqual(await introspect(app, tokens.accessToken), { active: false });
      const impostor = { ...app, secret: "wrong" };
      await assertRefusal(introspect(impostor, tokens.accessToken), INVALID_CLIENT);
    }
  };
};

/** RFC 6750 §2.1. */
export const tryRequest: Trial = (client, stage) => {
  const { code, request } = client;
  const [auth] = client.auth;
  if (code === undefined || request === undefined || auth === undefined) return undefined;
  return async () => {
    const { accessToken } = await code(stage.app(auth), SCOPE);
    assert.equal((await request(stage.whoami, accessToken))["sub"], stage.user.id);
    await assertRefusal(request(stage.whoami, alter(accessToken)), /invalid_token|\b401\b/);
  };
};

function refreshTokenOf({ refreshToken }: Tokens): string {
  assert.ok(refreshToken, "no refresh token");
  return refreshToken;
}

function allApps(client: Client, stage: Stage): readonly AppLogin[] {
  return client.auth.map((auth) => stage.app(auth));
}

function confidentialApps(client: Client, stage: Stage): readonly AppLogin[] {
  return allApps(client, stage).filter(({ auth }) => auth !== "none");
}
