import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { generatePrivateKey, importKey, type SigningAlgorithm } from "../../src/base/jwt.ts";
import {
  assertionClaims,
  assertionFields,
  badAssertions,
  badKeys,
  signAssertion,
} from "../corpus/client_assertions.ts";
import { forgedTokens, type PublishedKey } from "../corpus/jwts.ts";
import { type Gatepost, startGatepost, type TestApp } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { signJwt } from "../helpers/jwt.ts";
import { basicAuth, bearer, newAddress, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, readObject, readTokens } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

const ISSUER = "http://gatepost.test";
const env = { GATEPOST_BASE_URL: ISSUER };
const CREDENTIALS = { grant_type: "client_credentials" };

/** An app that authenticates by a key. */
interface KeyedApp extends TestApp {
  readonly privateKey: KeyObject;
  readonly jwk: PublishedKey;
}

let gatepost: Gatepost;
let app: KeyedApp;
let other: KeyedApp;
before(async () => {
  gatepost = await startGatepost({ env });
  app = await addKeyedApp("key-of-app");
  other = await addKeyedApp("key-of-other");
});
after(() => gatepost.stop());

async function addKeyedApp(kid: string, more: object = {}): Promise<KeyedApp> {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid };
  const made = await gatepost.createApp({ jwks: { keys: [jwk] }, trusted: true, ...more });
  return { ...made, privateKey, jwk };
}

function prove(of: KeyedApp, change: object = {}, header: object = {}): Fields {
  const head = { alg: "ES256", typ: "JWT", kid: of.jwk.kid, ...header };
  const claims = { ...assertionClaims(of.id, ISSUER), ...change };
  return assertionFields(signAssertion(head, claims, of.privateKey));
}

const send = (fields: Fields, headers: Fields = {}, at = gatepost): Promise<ClientResponse> =>
  at.api.postForm("/authorization/token", { ...CREDENTIALS, ...fields }, headers);

const patch = (of: TestApp, fields: object) =>
  gatepost.api.sendJson("PATCH", `/backend/app/${of.id}`, fields, bearer(gatepost.adminToken));

describe("an assertion authenticates the app that registered its key (RFC 7523 §2.2)", () => {
  const nowS = () => Math.floor(Date.now() / 1000);
  const cases: [what: string, claims: () => object, header?: object][] = [
    ["with all usual claims", () => ({})],
    ["without typ", () => ({}), { typ: undefined }],
    ["with typ client-authentication+jwt", () => ({}), { typ: "client-authentication+jwt" }],
    ["with that typ as a full media type", () => ({}),
      { typ: "application/client-authentication+jwt" }],
    ["without kid", () => ({}), { kid: undefined }],
    ["with aud as a list of the issuer", () => ({ aud: [ISSUER] })],
    ["without iat", () => ({ iat: undefined })],
    ["with nbf", () => ({ nbf: nowS() })],
    ["with exp 5 minutes ahead", () => ({ exp: nowS() + 300 })],
    ["from a clock that is 5 s ahead", () => ({ iat: nowS() + 5, nbf: nowS() + 5 })],
    ["with claims that have no meaning here", () => ({ scope: "backend", x: [1] })],
  ];
  for (const [what, claims, header] of cases) {
    test(what, async () => {
      const { scope } = readTokens(await send(prove(app, claims(), header)));
      assert.equal(scope, "consumer");
    });
  }

  test("together with its own client_id", async () => {
    readTokens(await send({ ...prove(app), client_id: app.id }));
  });

  for (const alg of ["ES256", "RS256", "EdDSA"] as const satisfies SigningAlgorithm[]) {
    test(`signed with ${alg}, by one of several keys`, async () => {
      const key = importKey("mine", alg, await generatePrivateKey(alg));
      const jwk = key.publicKey.export({ format: "jwk" });
      const keys = [app.jwk, { ...jwk, kid: "mine", key_ops: ["verify"], ext: true }];
      const { id } = await gatepost.createApp({ jwks: { keys } });
      const token = signJwt("JWT", assertionClaims(id, ISSUER), key);
      readTokens(await send(assertionFields(token)));
    });
  }

  test("for codes, refresh tokens, revocation and introspection", async () => {
    const user = await gatepost.createUser();
    const { challenge, verifier } = newPkce();
    const code = await gatepost.code(app, user, challenge);
    const grant = { grant_type: "authorization_code", code, ...verifier };
    const first = readTokens(await send({ ...grant, ...prove(app) }));
    const renewal = { grant_type: "refresh_token", refresh_token: first.refresh_token };
    const { access_token: token } = readTokens(await send({ ...renewal, ...prove(app) }));
    const ask = (path: string) => gatepost.api.postForm(path, { token, ...prove(app) });
    assert.equal(readObject(await ask("/authorization/introspect"))["active"], true);
    assert.equal((await ask("/authorization/revoke")).status, 200);
    assert.deepEqual(readObject(await ask("/authorization/introspect")), { active: false });
  });
});

test("invalid assertions are refused, and all failures have the same response", async (t) => {
  const attacked = { ...app, app: app.id, issuer: ISSUER };
  const rival = { app: other.id, kid: other.jwk.kid, privateKey: other.privateKey };
  const cases = badAssertions({ ...attacked, other: rival });
  const bodies = { with: new Set<string>(), without: new Set<string>() };
  const hasAssertion = (fields: Fields) =>
    Object.keys(fields).some((name) => name.startsWith("client_assertion"));
  for (const { what, fields, status } of cases) {
    const response = await send(fields);
    assert.equal(response.status, status, `${what}: ${response.text}`);
    assertOAuthError(response, status, status === 400 ? "invalid_request" : "invalid_client");
    if (status === 401) bodies[hasAssertion(fields) ? "with" : "without"].add(response.text);
  }
  assert.deepEqual([bodies.with.size, bodies.without.size], [1, 1]);
  t.diagnostic(`${cases.length} assertions`);
});

test("a refused assertion gets a response that states the rules (RFC 7521 §4.2.1)", async () => {
  const inAnHour = { exp: Math.floor(Date.now() / 1000) + 3600 }; // what Authlib sends by default
  const response = await send(prove(app, inAnHour));
  assertOAuthError(response, 401, "invalid_client");
  const rule = /aud = the issuer alone, exp at most 5 minutes ahead/;
  assert.match(String(readObject(response)["error_description"]), rule);
});

test("forged assertions are refused, and the genuine one is accepted once", async (t) => {
  const good = prove(app);
  const token = good["client_assertion"] ?? "";
  const forged = forgedTokens({ token, jwk: app.jwk });
  for (const [what, forgery] of forged) {
    assert.equal((await send(assertionFields(forgery))).status, 401, what);
  }
  readTokens(await send(good));
  assertOAuthError(await send(good), 401, "invalid_client");
  t.diagnostic(`${forged.length} forgeries`);
});

test("an assertion with a secret or a token, or in the query, is refused", async () => {
  const { authorization } = basicAuth({ id: app.id, secret: "x" });
  assertOAuthError(await send(prove(app), { authorization }), 400, "invalid_request");
  const query = new URLSearchParams(prove(app));
  const inQuery = await gatepost.api.postForm(`/authorization/token?${query}`, CREDENTIALS);
  assertOAuthError(inQuery, 400, "invalid_request");
  const asBearer = bearer(gatepost.adminToken);
  const revoke = await gatepost.api.postForm("/authorization/revoke", prove(app), asBearer);
  assertOAuthError(revoke, 400, "invalid_request");
});

test("after 50 failed assertions the next failure from that address is 429", async () => {
  const from = { "x-forwarded-for": newAddress() };
  for (let count = 0; count < 50; count++) {
    assertOAuthError(await send(prove(app, { jti: "" }), from), 401, "invalid_client");
  }
  assertOAuthError(await send(prove(app, { jti: "" }), from), 429, "temporarily_unavailable");
  readTokens(await send(prove(app), from));
});

test("an app can use a jti once, at two processes and after a restart too", async () => {
  const { folder } = gatepost.server;
  const second = await startGatepost({ env, folder });
  const [used, raced] = [prove(app), prove(app)];
  readTokens(await send(used));
  assertOAuthError(await send(used, {}, second), 401, "invalid_client");
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, at) => send(raced, {}, at % 2 ? gatepost : second)),
  );
  assert.equal(responses.filter(({ status }) => status === 200).length, 1);
  await second.stop();
  const restarted = await startGatepost({ env, folder });
  assertOAuthError(await send(used, {}, restarted), 401, "invalid_client");
  const { jti } = assertionClaims(app.id, ISSUER);
  readTokens(await send(prove(app, { jti }), {}, restarted));
  readTokens(await send(prove(other, { jti }), {}, restarted));
  await restarted.stop();
});

describe("the keys of an app", () => {
  test("are shown, and the app has no secret", async () => {
    const path = `/backend/app/${app.id}`;
    const record = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
    assert.deepEqual(record["jwks"], { keys: [app.jwk] });
    assert.equal(app.secret, "");
  });

  test("are refused if they are invalid or private, with a pointer to the error", async () => {
    for (const [what, jwks, pointer] of badKeys()) {
      const response = await patch(app, { jwks });
      assert.equal(response.status, 400, what);
      const { errors }: { errors: { pointer: string }[] } = JSON.parse(response.text);
      assert.ok(errors.some((error) => error.pointer === pointer), `${what}: ${response.text}`);
    }
    readTokens(await send(prove(app)));
  });

  test("are refused for a public app", async () => {
    const open = await gatepost.createApp({ type: "public" });
    assert.equal((await patch(open, { jwks: { keys: [app.jwk] } })).status, 400);
  });

  test("replace both secrets at once, and a secret can replace the keys", async () => {
    const first = await gatepost.createApp();
    const replace = (of: TestApp) =>
      gatepost.api.postJson(`/backend/app/${of.id}/secret`, {}, bearer(gatepost.adminToken));
    const secret = String(readObject(await replace(first))["client_secret"]);
    const second = { ...first, secret };
    await gatepost.change(first, { jwks: { keys: [app.jwk] } });
    for (const old of [first, second]) {
      assertOAuthError(await send({}, basicAuth(old)), 401, "invalid_client");
    }
    const keyed = { ...app, ...first };
    readTokens(await send(prove(keyed)));
    assert.equal((await replace(first)).status, 409);
    await gatepost.change(first, { jwks: null });
    assertOAuthError(await send(prove(keyed)), 401, "invalid_client");
    for (const old of [first, second]) {
      assertOAuthError(await send({}, basicAuth(old)), 401, "invalid_client");
    }
    const third = { ...first, secret: String(readObject(await replace(first))["client_secret"]) };
    readTokens(await send({}, basicAuth(third)));
  });

  test("are invalid once they are replaced, within a second at another process", async () => {
    const second = await startGatepost({ env, folder: gatepost.server.folder });
    const moved = await addKeyedApp("old");
    readTokens(await send(prove(moved), {}, second));
    const jwk = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
    await gatepost.change(moved, { jwks: { keys: [jwk] } });
    assertOAuthError(await send(prove(moved)), 401, "invalid_client");
    await sleep(1000); // the promised limit for other processes
    assertOAuthError(await send(prove(moved), {}, second), 401, "invalid_client");
    await second.stop();
  });
});
