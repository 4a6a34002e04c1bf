import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer, newAddress, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, readObject, readTokens } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

const CLIENT_CREDENTIALS = { grant_type: "client_credentials" };

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser();
  const grants = ["authorization_code", "refresh_token", "client_credentials", "password"];
  app = await gatepost.createApp({ grants, trusted: true });
  publicApp = await gatepost.createApp({ type: "public", trusted: true });
});
after(() => gatepost.stop());

const send = (fields: Fields, headers: Fields = {}): Promise<ClientResponse> =>
  gatepost.api.postForm("/authorization/token", fields, headers);

const inBody = ({ id, secret }: TestApp): Fields => ({ client_id: id, client_secret: secret });

/** Every character escaped, as RFC 6749 §2.3.1 allows. */
const escapeAll = (text: string) =>
  [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join("");

describe("every grant accepts both ways of client authentication (RFC 6749 §2.3.1)", () => {
  const grants: [type: string, fields: () => Promise<Fields>][] = [
    ["client_credentials", async () => CLIENT_CREDENTIALS],
    ["password", async () => ({
      grant_type: "password",
      username: user.username,
      password: user.password,
    })],
    ["authorization_code", async () => ({
      grant_type: "authorization_code",
      code: await gatepost.code(app, user),
    })],
    ["refresh_token", async () => {
      const tokens = readTokens(await send(CLIENT_CREDENTIALS, basicAuth(app)));
      return { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    }],
  ];
  for (const [type, fields] of grants) {
    test(`${type} with Basic`, async () => {
      readTokens(await send(await fields(), basicAuth(app)));
    });
    test(`${type} with client_id and client_secret in the body`, async () => {
      readTokens(await send({ ...await fields(), ...inBody(app) }));
    });
  }
});

describe("client authentication accepts", () => {
  test("Basic with both halves form-encoded", async () => {
    const encoded = { id: escapeAll(app.id), secret: escapeAll(app.secret) };
    readTokens(await send(CLIENT_CREDENTIALS, basicAuth(encoded)));
  });

  test("Basic with only the secret form-encoded", async () => {
    const encoded = { id: app.id, secret: escapeAll(app.secret) };
    readTokens(await send(CLIENT_CREDENTIALS, basicAuth(encoded)));
  });

  test("the scheme Basic in any case", async () => {
    const authorization = basicAuth(app).authorization.replace("Basic", "bAsIc");
    readTokens(await send(CLIENT_CREDENTIALS, { authorization }));
  });

  test("the same client_id in the body beside Basic", async () => {
    readTokens(await send({ ...CLIENT_CREDENTIALS, client_id: app.id }, basicAuth(app)));
  });

  test("an empty client_secret in the body, which counts as none, beside Basic", async () => {
    readTokens(await send({ ...CLIENT_CREDENTIALS, client_secret: "" }, basicAuth(app)));
  });

  test("the client_id alone from a public app", async () => {
    const pair = newPkce();
    const code = await gatepost.code(publicApp, user, pair.challenge);
    const fields = { grant_type: "authorization_code", code, ...pair.verifier };
    readTokens(await send({ ...fields, client_id: publicApp.id }));
  });
});

describe("client authentication returns 401 invalid_client (RFC 6749 §5.2) for", () => {
  const b64 = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  const cases: [what: string, fields: () => Fields, headers: () => Fields][] = [
    ["no credentials", () => ({}), () => ({})],
    ["a wrong secret in Basic", () => ({}), () => basicAuth({ ...app, secret: "wrong" })],
    ["a wrong secret in the body", () => ({ ...inBody(app), client_secret: "wrong" }), () => ({})],
    ["the secret in another case", () => ({}),
      () => basicAuth({ ...app, secret: app.secret.toLowerCase() })],
    ["the secret without its last character", () => ({}),
      () => basicAuth({ ...app, secret: app.secret.slice(0, -1) })],
    ["the secret with a character added", () => ({}),
      () => basicAuth({ ...app, secret: `${app.secret}x` })],
    ["the secret of another app", () => ({}),
      () => basicAuth({ ...publicApp, secret: app.secret })],
    ["an unknown app in Basic", () => ({}), () => basicAuth({ id: "aunknown", secret: "x" })],
    ["an unknown app in the body", () => ({ client_id: "aunknown" }), () => ({})],
    ["a confidential app's id alone", () => ({ client_id: app.id }), () => ({})],
    ["a confidential app's id with an empty secret",
      () => ({ client_id: app.id, client_secret: "" }), () => ({})],
    ["a confidential app's empty Basic password", () => ({}),
      () => basicAuth({ id: app.id, secret: "" })],
    ["a public app with a secret", () => ({ ...inBody(publicApp), client_secret: "x" }),
      () => ({})],
    ["a secret without an id", () => ({ client_secret: app.secret }), () => ({})],
    ["the built-in app login", () => ({ client_id: "login" }), () => ({})],
    ["the id in another case", () => ({}), () => basicAuth({ ...app, id: app.id.toUpperCase() })],
    ["Basic without a colon", () => ({}), () => ({ authorization: b64(app.id) })],
    ["Basic that is not base64", () => ({}), () => ({ authorization: "Basic !!!" })],
    ["Bearer with a good token", () => ({}), () => bearer(gatepost.adminToken)],
    ["a Basic header without credentials beside a good body", () => inBody(app),
      () => ({ authorization: "Basic" })],
  ];
  for (const [what, fields, headers] of cases) {
    test(what, async () => {
      const response = await send({ ...CLIENT_CREDENTIALS, ...fields() }, headers());
      assertOAuthError(response, 401, "invalid_client");
      const challenge = response.headers.get("www-authenticate");
      assert.equal(challenge, 'Basic realm="gatepost", charset="UTF-8"');
    });
  }

  test("an unknown app, a disabled app and a wrong secret, with the same body", async () => {
    const disabled = await gatepost.createApp();
    await gatepost.change(disabled, { status: "disabled" });
    const bodies = new Set<string>();
    for (const sent of [disabled, { ...app, secret: "wrong" }, { ...app, id: "aunknown" }]) {
      const response = await send(CLIENT_CREDENTIALS, basicAuth(sent));
      assertOAuthError(response, 401, "invalid_client");
      bodies.add(response.text);
    }
    assert.equal(bodies.size, 1);
  });

  test("an app that has been deleted", async () => {
    const deleted = await gatepost.createApp();
    const headers = bearer(gatepost.adminToken);
    const response = await gatepost.api.send("DELETE", `/backend/app/${deleted.id}`, { headers });
    assert.equal(response.status, 204);
    assertOAuthError(await send(CLIENT_CREDENTIALS, basicAuth(deleted)), 401, "invalid_client");
  });
});

describe("client authentication returns 400 invalid_request (RFC 6749 §2.3) for", () => {
  const cases: [what: string, body: () => string, headers: () => Fields][] = [
    ["both secrets", () => `client_id=${app.id}&client_secret=${app.secret}`, () => basicAuth(app)],
    ["a secret in the body beside Basic", () => `client_secret=${app.secret}`,
      () => basicAuth(app)],
    ["another client_id than Basic's", () => `client_id=${publicApp.id}`, () => basicAuth(app)],
    ["an unknown client_id beside Basic", () => "client_id=aunknown", () => basicAuth(app)],
    ["client_id twice", () => `client_id=${app.id}&client_id=${app.id}&client_secret=${app.secret}`,
      () => ({})],
    ["two different client_ids", () => `client_id=${app.id}&client_id=${publicApp.id}`, () => ({})],
    ["client_id twice, once empty", () => `client_id=&client_id=${publicApp.id}`, () => ({})],
    ["client_id twice beside Basic", () => `client_id=${app.id}&client_id=${app.id}`,
      () => basicAuth(app)],
    ["client_secret twice beside Basic", () => "client_secret=a&client_secret=b",
      () => basicAuth(app)],
    ["client_secret twice",
      () => `client_id=${app.id}&client_secret=${app.secret}&client_secret=${app.secret}`,
      () => ({})],
  ];
  for (const [what, body, headers] of cases) {
    test(what, async () => {
      const response = await gatepost.api.send("POST", "/authorization/token", {
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers() },
        body: `grant_type=client_credentials&${body()}`,
      });
      assertOAuthError(response, 400, "invalid_request");
    });
  }
});

describe("a new secret of an app (POST /backend/app/{client_id}/secret)", () => {
  async function rotate(of: TestApp, body?: object): Promise<TestApp> {
    const path = `/backend/app/${of.id}/secret`;
    const headers = bearer(gatepost.adminToken);
    const response = body === undefined
      ? await gatepost.api.send("POST", path, { headers })
      : await gatepost.api.postJson(path, body, headers);
    assert.equal(response.status, 200, response.text);
    return { ...of, secret: String(readObject(response)["client_secret"]) };
  }

  test("is accepted at once, and the old one is still accepted", async () => {
    const old = await gatepost.createApp();
    for (const each of [await rotate(old), old]) {
      readTokens(await send(CLIENT_CREDENTIALS, basicAuth(each)));
    }
  });

  test("ends the secret before the old one", async () => {
    const first = await gatepost.createApp();
    await rotate(await rotate(first));
    assertOAuthError(await send(CLIENT_CREDENTIALS, basicAuth(first)), 401, "invalid_client");
  });

  test("ends the old one at once if the request says so", async () => {
    const old = await gatepost.createApp();
    const next = await rotate(old, { revoke: true });
    readTokens(await send(CLIENT_CREDENTIALS, basicAuth(next)));
    assertOAuthError(await send(CLIENT_CREDENTIALS, basicAuth(old)), 401, "invalid_client");
  });
});

describe("50 failures of client authentication from one address", () => {
  const from = { "x-forwarded-for": newAddress() };
  const fail = (headers: Fields = from) =>
    send(CLIENT_CREDENTIALS, { ...basicAuth({ ...app, secret: "wrong" }), ...headers });
  before(async () => {
    for (let count = 0; count < 50; count++) {
      assertOAuthError(await fail(), 401, "invalid_client");
    }
  });

  test("make the next one 429 temporarily_unavailable with Retry-After", async () => {
    const response = await fail();
    assertOAuthError(response, 429, "temporarily_unavailable");
    assert.ok(Number(response.headers.get("retry-after")) > 0);
  });

  test("make a failure of another app 429 too", async () => {
    const sent = { ...CLIENT_CREDENTIALS, client_id: "aunknown" };
    assertOAuthError(await send(sent, from), 429, "temporarily_unavailable");
  });

  test("do not lock the app out at another address", async () => {
    assertOAuthError(await fail({}), 401, "invalid_client");
    readTokens(await send(CLIENT_CREDENTIALS, basicAuth(app)));
  });

  test("do not lock out an app that sends its right secret from the same address", async () => {
    readTokens(await send(CLIENT_CREDENTIALS, { ...basicAuth(app), ...from }));
  });
});
