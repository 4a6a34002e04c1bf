import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ID_LENGTH } from "../../src/base/id.ts";
import {
  type Gatepost,
  startGatepost,
  type TestApp,
  type TestUser,
  waitUntilDead,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer, newAddress } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let otherApp: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser();
  app = await gatepost.createApp({ trusted: true });
  otherApp = await gatepost.createApp();
  publicApp = await gatepost.createApp({ type: "public", trusted: true });
});
after(() => gatepost.stop());

const revoke = (fields: Fields, headers: Fields = basicAuth(app)): Promise<ClientResponse> =>
  gatepost.api.postForm("/authorization/revoke", fields, headers);

const REVOKE = "/authorization/revoke";

const refresh = (token: string, by: TestApp = app): Promise<ClientResponse> =>
  gatepost.refresh(by, token);

function assertRevoked(response: ClientResponse): void {
  assert.equal(response.status, 200, response.text);
}

describe("POST /authorization/revoke (RFC 7009 §2)", () => {
  for (const hint of ["", "access_token", "refresh_token", "nonsense"]) {
    const hinted = hint === "" ? {} : { token_type_hint: hint };

    test(`ends only the access token, at once, with hint "${hint}"`, async () => {
      const { access_token, refresh_token } = await gatepost.codeTokens(app, user);
      assertRevoked(await revoke({ token: access_token, ...hinted }));
      assert.equal(await gatepost.isAlive(access_token), false);
      const next = readTokens(await refresh(refresh_token));
      assert.equal(await gatepost.isAlive(next.access_token), true);
    });

    test(`ends a refresh token with its grant and access tokens, with hint "${hint}"`, async () => {
      const first = await gatepost.codeTokens(app, user);
      const second = readTokens(await refresh(first.refresh_token));
      assertRevoked(await revoke({ token: second.refresh_token, ...hinted }));
      assert.equal(await gatepost.isAlive(first.access_token), false);
      assert.equal(await gatepost.isAlive(second.access_token), false);
      assertOAuthError(await refresh(second.refresh_token), 400, "invalid_grant");
    });
  }

  test("ends the grant of a refresh token that was used already", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = readTokens(await refresh(first.refresh_token));
    assertRevoked(await revoke({ token: first.refresh_token }));
    assert.equal(await gatepost.isAlive(second.access_token), false);
    assertOAuthError(await refresh(second.refresh_token), 400, "invalid_grant");
  });

  test("ends the grant too if the app may not refresh, which is audited", async () => {
    const bare = await gatepost.createApp({ grants: ["authorization_code"], trusted: true });
    const owner = await gatepost.createUser();
    const found: unknown[] = [];
    const from = { "x-forwarded-for": newAddress() };
    for (const by of ["app", "holder"]) {
      const { access_token: token } = await gatepost.codeTokens(bare, owner);
      const [fields, headers] = by === "app" ? [{ token }, basicAuth(bare)] : [{}, bearer(token)];
      assertRevoked(await revoke(fields, { ...headers, ...from }));
      const target = String(decodeJwt(token).claims["jti"]).slice(0, ID_LENGTH);
      const path = `/backend/audit?target=${target}&action=grant.revoke`;
      const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
      assert.ok(Array.isArray(items));
      found.push(...items.map(({ actor, app, address }) => [actor, app, address]));
    }
    const address = from["x-forwarded-for"];
    assert.deepEqual(found, [[bare.id, null, address], [owner.id, bare.id, address]]);
  });

  test("ends no other grant of the same user and app", async () => {
    const other = await gatepost.codeTokens(app, user);
    const { refresh_token } = await gatepost.codeTokens(app, user);
    assertRevoked(await revoke({ token: refresh_token }));
    assert.equal(await gatepost.isAlive(other.access_token), true);
    readTokens(await refresh(other.refresh_token));
  });

  test("accepts credentials in the body", async () => {
    const { access_token } = await gatepost.codeTokens(app, user);
    const credentials = { client_id: app.id, client_secret: app.secret };
    assertRevoked(await revoke({ token: access_token, ...credentials }, {}));
    assert.equal(await gatepost.isAlive(access_token), false);
  });

  test("accepts a public app's id without a secret", async () => {
    const { access_token } = await gatepost.codeTokens(publicApp, user);
    assertRevoked(await revoke({ token: access_token, client_id: publicApp.id }, {}));
    assert.equal(await gatepost.isAlive(access_token), false);
  });

  test("returns 200 the second time too", async () => {
    const { access_token, refresh_token } = await gatepost.codeTokens(app, user);
    for (const token of [access_token, access_token, refresh_token, refresh_token]) {
      assertRevoked(await revoke({ token }));
    }
  });

  for (const token of ["x", "a.b.c", "A".repeat(66), "A".repeat(20_000), "ü", "\0"]) {
    test(`returns 200 for an unknown token: ${JSON.stringify(token.slice(0, 9))}`, async () => {
      assertRevoked(await revoke({ token }));
    });
  }

  test("returns 200 for an access token with a changed signature, which ends nothing", async () => {
    const { access_token } = await gatepost.codeTokens(app, user);
    const changed = access_token.slice(0, -4) + (access_token.endsWith("AAAA") ? "BBBB" : "AAAA");
    assertRevoked(await revoke({ token: changed }));
    assert.equal(await gatepost.isAlive(access_token), true);
  });

  test("leaves another app's access token alive: 400 unauthorized_client (§2.1)", async () => {
    const { access_token } = await gatepost.codeTokens(app, user);
    const response = await revoke({ token: access_token }, basicAuth(otherApp));
    assertOAuthError(response, 400, "unauthorized_client");
    assert.equal(await gatepost.isAlive(access_token), true);
  });

  test("leaves another app's refresh token alive: 400 unauthorized_client", async () => {
    const { access_token, refresh_token } = await gatepost.codeTokens(app, user);
    const response = await revoke({ token: refresh_token, client_id: publicApp.id }, {});
    assertOAuthError(response, 400, "unauthorized_client");
    assert.equal(await gatepost.isAlive(access_token), true);
    readTokens(await refresh(refresh_token));
  });

  test("refuses a login token that an app presents, and leaves it alive", async () => {
    const token = await gatepost.login(user);
    assertOAuthError(await revoke({ token }), 400, "unauthorized_client");
    assert.equal(await gatepost.isAlive(token), true);
  });

  const token = "x";
  const refused: [what: string, status: number, send: () => Promise<ClientResponse>][] = [
    ["no token", 400, () => revoke({})],
    ["an empty token", 400, () => revoke({ token: "" })],
    ["no credentials", 401, () => revoke({ token }, {})],
    ["a wrong secret", 401, () => revoke({ token }, basicAuth({ ...app, secret: "x" }))],
    ["a confidential app's id alone", 401, () => revoke({ token, client_id: app.id }, {})],
    ["an unknown app", 401, () => revoke({ token, client_id: "aunknown" }, {})],
  ];
  for (const [what, status, send] of refused) {
    test(`refuses ${what} with ${status}`, async () => {
      assertOAuthError(await send(), status, status === 400 ? "invalid_request" : "invalid_client");
    });
  }

  test("refuses a token in the query", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded", ...basicAuth(app) };
    const path = "/authorization/revoke?token=x";
    const response = await gatepost.api.send("POST", path, { headers, body: "token=x" });
    assertOAuthError(response, 400, "invalid_request");
  });

  test("refuses two token parameters", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded", ...basicAuth(app) };
    const body = "token=x&token=y";
    const response = await gatepost.api.send("POST", "/authorization/revoke", { headers, body });
    assertOAuthError(response, 400, "invalid_request");
  });
});

describe("POST /authorization/revoke with Authorization: Bearer", () => {
  const revokeOwn = (token: string) =>
    gatepost.api.send("POST", "/authorization/revoke", { headers: bearer(token) });

  test("ends the presented login token: 200 and an empty object, then 401", async () => {
    const token = await gatepost.login(user);
    const response = await revokeOwn(token);
    assert.equal(response.status, 200);
    assert.deepEqual(readObject(response), {});
    assert.equal(await gatepost.isAlive(token), false);
    const again = await revokeOwn(token);
    assert.equal(again.status, 401);
    assert.match(again.headers.get("www-authenticate") ?? "", /^Bearer .*error="invalid_token"/);
  });

  test("accepts a content type without a body, which some clients always send", async () => {
    const token = await gatepost.login(user);
    const headers = { ...bearer(token), "content-type": "application/json" };
    const response = await gatepost.api.send("POST", "/authorization/revoke", { headers });
    assert.equal(response.status, 200, response.text);
    assert.equal(await gatepost.isAlive(token), false);
  });

  test("accepts an empty JSON object, which some clients send with every POST", async () => {
    const token = await gatepost.login(user);
    const response = await gatepost.api.postJson("/authorization/revoke", {}, bearer(token));
    assert.equal(response.status, 200, response.text);
    assert.equal(await gatepost.isAlive(token), false);
  });

  test("refuses JSON with a member, and invalid JSON, and ends nothing", async () => {
    const token = await gatepost.login(user);
    const headers = { ...bearer(token), "content-type": "application/json" };
    for (const body of ['{"token":"x"}', '{"client_id":"x"}', "{"]) {
      const options = { headers, body };
      const response = await gatepost.api.send("POST", "/authorization/revoke", options);
      assertOAuthError(response, 400, "invalid_request");
    }
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("refuses a body without a content type, and ends nothing", async () => {
    const token = await gatepost.login(user);
    const body = new TextEncoder().encode("token=x");
    const options = { headers: bearer(token), body };
    const response = await gatepost.api.send("POST", "/authorization/revoke", options);
    assertOAuthError(response, 400, "invalid_request");
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("ends only that token", async () => {
    const [one, other] = [await gatepost.login(user), await gatepost.login(user)];
    assert.equal((await revokeOwn(one)).status, 200);
    assert.equal(await gatepost.isAlive(other), true);
  });

  test("ends the grant of a login with one audit entry, and keeps its subscriptions", async () => {
    const owner = await gatepost.createUser();
    const token = await gatepost.login(owner);
    const admin = bearer(gatepost.adminToken);
    const list = async (path: string) => {
      const response = await gatepost.api.get(path, admin);
      assert.equal(response.status, 200, response.text);
      const { items }: { items: Record<string, unknown>[] } = JSON.parse(response.text);
      return items;
    };
    const fields = { event: "order.created", endpoint: "https://shop.example/hook" };
    await gatepost.api.postJson("/consumer/subscription", fields, bearer(token));
    const headers = bearer(token);
    await Promise.all([1, 2, 3].map(() => gatepost.api.send("POST", REVOKE, { headers })));
    const [grant] = await list(`/backend/grant?user=${owner.id}`);
    assert.equal(grant?.["status"], "revoked");
    const ends = await list(`/backend/audit?target=${grant?.["id"]}&action=grant.revoke`);
    assert.deepEqual(ends.map(({ actor }) => actor), [owner.id]);
    const [subscription] = await list(`/backend/subscription?owner=${owner.id}`);
    assert.equal(subscription?.["status"], "active");
  });

  test("ends an app's access token, and keeps its refresh token", async () => {
    const { access_token, refresh_token } = await gatepost.codeTokens(app, user);
    assert.equal((await revokeOwn(access_token)).status, 200);
    assert.equal(await gatepost.isAlive(access_token), false);
    readTokens(await refresh(refresh_token));
  });

  test("accepts an empty form, and one with an empty token", async () => {
    for (const fields of [{}, { token: "" }]) {
      const token = await gatepost.login(user);
      assert.equal((await revoke(fields, bearer(token))).status, 200);
      assert.equal(await gatepost.isAlive(token), false);
    }
  });

  test("returns 400 for a token in the header and one in the body, and ends neither", async () => {
    const token = await gatepost.login(user);
    const { access_token } = await gatepost.codeTokens(publicApp, user);
    for (const more of [{}, { client_id: publicApp.id }]) {
      const response = await revoke({ token: access_token, ...more }, bearer(token));
      assertOAuthError(response, 400, "invalid_request");
    }
    assert.equal(await gatepost.isAlive(token), true);
    assert.equal(await gatepost.isAlive(access_token), true);
  });

  test("returns 400 for a token in the header and one in the query, and ends neither", async () => {
    const token = await gatepost.login(user);
    const { access_token } = await gatepost.codeTokens(publicApp, user);
    const path = `${REVOKE}?token=${access_token}`;
    const response = await gatepost.api.send("POST", path, { headers: bearer(token) });
    assertOAuthError(response, 400, "invalid_request");
    assert.equal(await gatepost.isAlive(token), true);
    assert.equal(await gatepost.isAlive(access_token), true);
  });

  test("returns 401 for a token that was never issued", async () => {
    const response = await revokeOwn("a.b.c");
    assert.equal(response.status, 401);
    assert.match(response.headers.get("www-authenticate") ?? "", /^Bearer /);
  });
});

describe("a second process on the same database", () => {
  for (const cron of ["on", "off"]) {
    test(`refuses a revoked token within 1 s, with GATEPOST_CRON=${cron}`, async () => {
      const env = { GATEPOST_BASE_URL: "http://gatepost.test", GATEPOST_CRON: cron };
      const first = await startGatepost({ env });
      try {
        const second = await startGatepost({ env, folder: first.server.folder });
        try {
          const token = await first.login(await first.createUser());
          assert.equal(await second.isAlive(token), true);
          const headers = bearer(token);
          const response = await first.api.send("POST", "/authorization/revoke", { headers });
          assert.equal(response.status, 200);
          const revokedMs = performance.now();
          assert.equal(await first.isAlive(token), false);
          await second.assertDies(token, revokedMs);
        } finally {
          await second.stop();
        }
      } finally {
        await first.stop();
      }
    });
  }

  test("revokes a token that the first has just signed with a new key", async () => {
    const env = { GATEPOST_BASE_URL: "http://gatepost.test" };
    const first = await startGatepost({ env });
    try {
      const second = await startGatepost({ env, folder: first.server.folder });
      try {
        const app = await first.createApp();
        for (let round = 0; round < 3; round++) {
          const headers = bearer(first.adminToken);
          await first.api.postJson("/backend/key", { at_once: true }, headers);
          const fields = { grant_type: "client_credentials" };
          const { access_token: token } = readTokens(await first.token(app, fields));
          const { id: client_id, secret: client_secret } = app;
          const response = await second.api.postForm("/authorization/revoke", {
            token,
            client_id,
            client_secret,
          });
          assert.equal(response.status, 200);
          await waitUntilDead(first, token);
        }
      } finally {
        await second.stop();
      }
    } finally {
      await first.stop();
    }
  });
});
