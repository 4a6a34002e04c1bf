import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { AppLogin, Client, ClientAuth, Tokens } from "./client.ts";
import type { Stage } from "./stage.ts";

/** Tries one feature of a client against a stage; undefined where the client does not know it. */
export type Trial = (client: Client, stage: Stage) => (() => Promise<void>) | undefined;

const SCOPE = "consumer orders";

const INVALID_GRANT = /invalid_grant/;
/** RFC 6749 §5.2: some clients tell of the 401 and its challenge alone. */
const INVALID_CLIENT = /invalid_client|401/;

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
    await assert.rejects(code(app, SCOPE, ({ searchParams }) => searchParams.delete("iss")));
    await assert.rejects(code(app, SCOPE, ({ searchParams }) => {
      searchParams.set("iss", "https://other.example");
    }));
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

/** RFC 6749 §6 with RFC 9700 §4.14.2: rotation, and reuse ends the grant. */
export const tryRefresh: Trial = (client, stage) => {
  const { code, refresh } = client;
  if (code === undefined || refresh === undefined) return undefined;
  return async () => {
    for (const app of allApps(client, stage)) {
      const first = await code(app, SCOPE);
      const second = await refresh(app, refreshTokenOf(first));
      assert.notEqual(second.refreshToken, first.refreshToken, "the refresh token did not rotate");
      await assertCaller(stage, second, stage.user.id, SCOPE);
      await assertRefusal(refresh(app, refreshTokenOf(first)), INVALID_GRANT);
      await assertRefusal(refresh(app, refreshTokenOf(second)), INVALID_GRANT);
      await assertRefused(stage, second.accessToken);
    }
  };
};

/** RFC 6749 §6: a narrower scope for the access token, and the chain keeps its own. */
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
      const told = await introspect(app, tokens.accessToken);
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
    await assertRefusal(request(stage.whoami, alter(accessToken)), /invalid_token|401/);
  };
};

/** RFC 9068 §4, with the keys that the server publishes. */
export const tryVerification: Trial = (client, stage) => {
  const { verify } = client;
  if (verify === undefined) return undefined;
  return async () => {
    const { token } = await stage.post("user", "/consumer/login", stage.user);
    const accessToken = String(token);
    const header = JSON.parse(atob(accessToken.slice(0, accessToken.indexOf("."))));
    assert.deepEqual([header.alg, header.typ], [stage.signingAlg, "at+jwt"]);
    const claims = await verify(accessToken, stage.issuer);
    assert.deepEqual([claims["iss"], claims["sub"]], [stage.issuer, stage.user.id]);
    await assert.rejects(verify(accessToken, "https://other.example"), "another audience");
    await assert.rejects(verify(alter(accessToken), stage.issuer), "an altered token");
  };
};

/** Standard Webhooks: a callback's signature, and who changed a byte is found out. */
export const tryCallback: Trial = (client, stage) => {
  const { verifyCallback } = client;
  if (verifyCallback === undefined) return undefined;
  return async () => {
    const { secret, callback: { body, headers }, data } = await receiveCallback(stage, "signed");
    assert.deepEqual(await verifyCallback(secret, body, headers), data);
    await assert.rejects(verifyCallback(secret, body.replace("7", "8"), headers));
    await assert.rejects(verifyCallback(OTHER_SECRET, body, headers), "another secret");
  };
};

/** For 24 hours after a new secret was made, the old one signs beside it. */
export const tryRotation: Trial = (client, stage) => {
  const { verifyCallback } = client;
  if (verifyCallback === undefined) return undefined;
  return async () => {
    const first = await receiveCallback(stage, "rotated");
    const path = `/consumer/subscription/${first.id}/secret`;
    const { secret } = await stage.post("user", path);
    assert.notEqual(secret, first.secret);
    const data = { id: 8 };
    await stage.post("admin", "/backend/event", { name: "rotated", data });
    const { body, headers } = await stage.receiver.next();
    for (const each of [first.secret, String(secret)]) {
      assert.deepEqual(await verifyCallback(each, body, headers), data);
    }
    await assert.rejects(verifyCallback(OTHER_SECRET, body, headers), "another secret");
  };
};

const OTHER_SECRET = `whsec_${btoa("a secret that no subscription has")}`;

/** Subscribes, dispatches and waits for what arrives. */
async function receiveCallback(stage: Stage, event: string) {
  const { receiver, post } = stage;
  const subscription = await post("user", "/consumer/subscription", {
    event,
    endpoint: receiver.url,
  });
  const data = { id: 7, text: "grün € 🌲", nested: [1.5, null, { "a/b": "\u2028" }] };
  await post("admin", "/backend/event", { name: event, data });
  const { id, secret } = subscription;
  return { id: String(id), secret: String(secret), callback: await receiver.next(), data };
}

/** Checks whom the server takes a token for, and what the client was told of its scope. */
async function assertCaller(
  stage: Stage,
  { accessToken, scope }: Tokens,
  sub: string,
  expectedScope: string,
): Promise<void> {
  const caller = await stage.caller(accessToken);
  assert.deepEqual([caller?.["sub"], caller?.["scope"]], [sub, expectedScope]);
  if (scope !== undefined) assert.equal(scope, expectedScope);
}

async function assertRefused(stage: Stage, accessToken: string): Promise<void> {
  assert.equal(await stage.caller(accessToken), undefined, "the access token still works");
}

/** Checks that the client was refused, and learnt why. */
async function assertRefusal(promise: Promise<unknown>, why: RegExp): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.match(inspect(error, { depth: 8 }), why);
    return true;
  });
}

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

/** The token with another signature. */
function alter(accessToken: string): string {
  const at = accessToken.lastIndexOf(".") + 5;
  return accessToken.slice(0, at) + (accessToken[at] === "A" ? "B" : "A") + accessToken.slice(at + 1);
}
