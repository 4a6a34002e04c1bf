import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { assertionClaims, assertionFields, signAssertion } from "../corpus/client_assertions.ts";
import {
  askForDevice,
  decide,
  DEVICE_GRANT,
  newDevice,
  openVerify,
  poll,
  pollFor,
  typeCode,
} from "../helpers/device.ts";
import { queryDatabase } from "../helpers/engine.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { bearer, newAddress } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

// Both processes need one base URL: without it each would be an issuer of its own.
const ISSUER = "http://gatepost.test";
const env = { GATEPOST_BASE_URL: ISSUER };
const grants = [DEVICE_GRANT, "refresh_token"];
const scopes = ["consumer", "orders"];

let gatepost: Gatepost;
/** Another process on the same database. */
let second: Gatepost;
let user: TestUser;
let app: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost({ env });
  second = await startGatepost({ env, folder: gatepost.server.folder });
  user = await gatepost.createUser({ scopes });
  app = await gatepost.createApp({ scopes, grants });
  publicApp = await gatepost.createApp({ scopes, grants, type: "public" });
});
after(async () => {
  await second.stop();
  await gatepost.stop();
});

describe("POST /authorization/device (RFC 8628 §3.1, §3.2)", () => {
  test("returns the codes and the URLs for the user, and is not cached", async () => {
    const response = await askForDevice(gatepost, app, { scope: "orders" });
    assert.equal(response.status, 200, response.text);
    assert.equal(response.headers.get("cache-control"), "no-store");
    const { device_code, user_code, ...rest } = readObject(response);
    assert.match(String(user_code), /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    assert.match(String(device_code), /^[\w-]{43}$/);
    assert.deepEqual(rest, {
      verification_uri: `${ISSUER}/authorization/verify`,
      verification_uri_complete: `${ISSUER}/authorization/verify?user_code=${user_code}`,
      expires_in: 600,
      interval: 5,
    });
  });

  test("accepts public apps and apps with a key", async () => {
    await newDevice(gatepost, publicApp);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k" };
    const { id } = await gatepost.createApp({ grants, jwks: { keys: [jwk] } });
    const prove = () => assertionFields(
      signAssertion({ alg: "ES256", kid: "k" }, assertionClaims(id, ISSUER), privateKey),
    );
    const response = await gatepost.api.postForm("/authorization/device", prove());
    assert.equal(response.status, 200, response.text);
    const device_code = String(readObject(response)["device_code"]);
    const fields = { grant_type: DEVICE_GRANT, device_code, ...prove() };
    const polled = await gatepost.api.postForm("/authorization/token", fields);
    assertOAuthError(polled, 400, "authorization_pending");
  });

  test("refuses invalid requests with the errors of the token endpoint", async () => {
    const stranger = { ...app, secret: "wrong" };
    assertOAuthError(await askForDevice(gatepost, stranger), 401, "invalid_client");
    const nobody = { ...publicApp, id: "a000000000000000000000000" };
    assertOAuthError(await askForDevice(gatepost, nobody), 401, "invalid_client");
    const other = await gatepost.createApp();
    assertOAuthError(await askForDevice(gatepost, other), 400, "unauthorized_client");
    const unknown = await askForDevice(gatepost, app, { scope: "stock" });
    assertOAuthError(unknown, 400, "invalid_scope");
    const foreign = await askForDevice(gatepost, app, { resource: "https://other.example" });
    assertOAuthError(foreign, 400, "invalid_target");
    const json = await gatepost.api.postJson("/authorization/device", {});
    assertOAuthError(json, 400, "invalid_request");
    assert.equal((await gatepost.api.get("/authorization/device")).status, 405);
  });

  test("gives one address 100 codes, and then 429 with Retry-After", async () => {
    const from = { "x-forwarded-for": newAddress() };
    for (let count = 0; count < 100; count++) {
      assert.equal((await askForDevice(gatepost, publicApp, {}, from)).status, 200);
    }
    const refused = await askForDevice(gatepost, publicApp, {}, from);
    assertOAuthError(refused, 429, "temporarily_unavailable");
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    await newDevice(gatepost, publicApp);
  });

  test("stores only the SHA-256 of the codes", async () => {
    const device = await newDevice(gatepost, app);
    const { folder } = gatepost.server;
    const rows = await queryDatabase(folder, "SELECT hex(hash) || hex(userCode) FROM device_codes");
    const text = JSON.stringify(rows);
    for (const code of [device.device_code, device.user_code, device.user_code.replace("-", "")]) {
      assert.ok(!text.includes(Buffer.from(code).toString("hex").toUpperCase()));
    }
  });
});

describe("the token endpoint (RFC 8628 §3.4, §3.5)", () => {
  test("responds authorization_pending until the user allows, then gives tokens", async () => {
    const device = await newDevice(gatepost, app);
    assertOAuthError(await poll(gatepost, app, device), 400, "authorization_pending");
    assert.equal((await decide(gatepost, user, device)).status, 200);
    const response = await poll(gatepost, app, device);
    const tokens = readTokens(response);
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(tokens.scope, "consumer orders");
    const { claims } = decodeJwt(tokens.access_token);
    assert.deepEqual([claims["sub"], claims["client_id"]], [user.id, app.id]);
    const next = readTokens(await gatepost.refresh(app, tokens.refresh_token));
    assert.equal(await gatepost.isAlive(next.access_token), true);
    const listed = await gatepost.api.get(`/backend/grant?user=${user.id}&app=${app.id}`,
      bearer(gatepost.adminToken));
    assert.match(listed.text, new RegExp(`"type":"${DEVICE_GRANT}"`));
  });

  test("gives no refresh token to an app that may not use it", async () => {
    const plain = await gatepost.createApp({ grants: [DEVICE_GRANT] });
    const device = await newDevice(gatepost, plain);
    await decide(gatepost, user, device);
    assert.equal(readTokens(await poll(gatepost, plain, device)).refresh_token, undefined);
  });

  test("grants the requested scopes that the user has, and backend by name only", async () => {
    const poor = await gatepost.createUser({ scopes: ["orders", "backend"] });
    const wide = await gatepost.createApp({ scopes: [...scopes, "backend"], grants });
    for (const [scope, granted] of [
      ["consumer orders", "orders"],
      ["", "orders"],
      ["backend", "backend"],
    ] as const) {
      const device = await newDevice(gatepost, wide, { scope });
      await decide(gatepost, poor, device);
      assert.equal(await pollFor(gatepost, wide, device), granted);
    }
  });

  test("responds slow_down to each early poll, which adds 5 seconds", async () => {
    const device = await newDevice(gatepost, app);
    assertOAuthError(await poll(gatepost, app, device), 400, "authorization_pending");
    for (const seconds of [10, 15, 20]) {
      const response = await poll(gatepost, app, device);
      assertOAuthError(response, 400, "slow_down");
      assert.match(response.text, new RegExp(`Wait ${seconds} seconds`));
    }
    const other = await newDevice(gatepost, app);
    assertOAuthError(await poll(gatepost, app, other), 400, "authorization_pending");
  });

  test("responds invalid_target to every resource except this service", async () => {
    const { device_code } = await newDevice(gatepost, app);
    const url = "https://known.example";
    const added = await gatepost.api.postJson("/backend/resource", { url, scopes },
      bearer(gatepost.adminToken));
    assert.equal(added.status, 201, added.text);
    for (const resource of ["https://else.example", url]) {
      const fields = { grant_type: DEVICE_GRANT, device_code, resource };
      assertOAuthError(await gatepost.token(app, fields), 400, "invalid_target");
    }
  });

  test("stores nothing for a poll", async () => {
    const device = await newDevice(gatepost, publicApp);
    const { folder } = gatepost.server;
    const read = () => queryDatabase(folder, "SELECT * FROM device_codes ORDER BY hash");
    const before = await read();
    for (let count = 0; count < 5; count++) await poll(gatepost, publicApp, device);
    assert.deepEqual(await read(), before);
  });

  test("responds access_denied after the user has denied", async () => {
    const device = await newDevice(gatepost, app);
    await decide(gatepost, user, device, "deny");
    assertOAuthError(await poll(gatepost, app, device), 400, "access_denied");
    assertOAuthError(await poll(gatepost, app, device), 400, "access_denied");
  });

  test("responds invalid_grant if the user withdraws the app before the exchange", async () => {
    const device = await newDevice(gatepost, app);
    const owner = await gatepost.createUser();
    await decide(gatepost, owner, device);
    const own = bearer(await gatepost.login(owner));
    const { items } = readObject(await gatepost.api.get("/consumer/grant", own));
    assert.deepEqual(Object(items).map(({ id }: { id: string }) => id), [app.id]);
    const path = `/consumer/grant/${app.id}`;
    const withdrawn = await gatepost.api.send("DELETE", path, { headers: own });
    assert.equal(withdrawn.status, 204, withdrawn.text);
    assert.equal(await pollFor(gatepost, app, device), "invalid_grant");
  });

  test("exchanges a code once, and a second exchange ends its tokens", async () => {
    const device = await newDevice(gatepost, app);
    await decide(gatepost, user, device);
    const tokens = readTokens(await poll(gatepost, app, device));
    assertOAuthError(await poll(gatepost, app, device), 400, "invalid_grant");
    assert.equal(await gatepost.isAlive(tokens.access_token), false);
  });

  test("accepts one of 20 simultaneous exchanges at two processes", async () => {
    const device = await newDevice(gatepost, app);
    await decide(gatepost, user, device);
    const responses = await Promise.all(Array.from({ length: 20 }, (_, index) =>
      poll(index % 2 ? gatepost : second, app, device)
    ));
    assert.equal(responses.filter(({ status }) => status === 200).length, 1);
    for (const response of responses) {
      if (response.status !== 200) assertOAuthError(response, 400, "invalid_grant");
    }
  });

  test("accepts a code only from the app that requested it, and no other string", async () => {
    const device = await newDevice(gatepost, app);
    await decide(gatepost, user, device);
    assertOAuthError(await poll(gatepost, publicApp, device), 400, "invalid_grant");
    for (const device_code of [device.user_code, `${device.device_code}x`, "x", "é"]) {
      assertOAuthError(await poll(gatepost, app, { device_code }), 400, "invalid_grant");
    }
    const none = await gatepost.token(app, { grant_type: DEVICE_GRANT });
    assertOAuthError(none, 400, "invalid_request");
    assert.equal(await pollFor(gatepost, app, device), "consumer orders");
  });

  test("does not accept a device code as an authorization code", async () => {
    const both = await gatepost.createApp({ grants: [DEVICE_GRANT, "authorization_code"] });
    const device = await newDevice(gatepost, both);
    await decide(gatepost, user, device);
    const fields = { grant_type: "authorization_code", code: device.device_code };
    assertOAuthError(await gatepost.token(both, fields), 400, "invalid_grant");
    assert.equal(await pollFor(gatepost, both, device), "consumer");
  });

  test("refuses a device code in the query, and an app that lost the grant", async () => {
    const lost = await gatepost.createApp({ grants });
    const device = await newDevice(gatepost, lost);
    await decide(gatepost, user, device);
    const path = `/authorization/token?device_code=${device.device_code}`;
    const fields = { grant_type: DEVICE_GRANT, client_id: lost.id, client_secret: lost.secret };
    assertOAuthError(await gatepost.api.postForm(path, fields), 400, "invalid_request");
    await gatepost.change(lost, { grants: ["refresh_token"] });
    assertOAuthError(await poll(gatepost, lost, device), 400, "unauthorized_client");
  });

  const ends: [what: string, end: (of: TestUser, by: TestApp) => Promise<unknown>][] = [
    ["the user was disabled", (of) => gatepost.change(of, { status: "disabled" })],
    ["the user got a new password", (of) => gatepost.change(of, { password: "another password" })],
    ["the user lost the scope", (of) => gatepost.change(of, { scopes: ["stock"] })],
    ["the app lost the scope", (_, by) => gatepost.change(by, { scopes: ["stock"] })],
    ["an administrator ended the user's grants", (of) =>
      gatepost.api.postJson("/backend/grant/revoke", { user: of.id }, bearer(gatepost.adminToken))],
  ];
  for (const [what, end] of ends) {
    test(`gives no tokens if ${what} after the consent`, async () => {
      const of = await gatepost.createUser({ scopes });
      const by = await gatepost.createApp({ scopes, grants });
      const device = await newDevice(gatepost, by);
      await decide(gatepost, of, device);
      await end(of, by);
      const response = await poll(gatepost, by, device);
      assert.equal(response.status, 400, response.text);
      assert.match(String(readObject(response)["error"]), /^invalid_(grant|scope)$/);
    });
  }
});

describe("two processes on one database", () => {
  test("let a user allow at one process what a device requested at the other", async () => {
    const device = await newDevice(gatepost, app);
    await decide(second, user, device);
    assert.equal(await pollFor(gatepost, app, device), "consumer orders");
  });

  test("count polls separately", async () => {
    const device = await newDevice(gatepost, app);
    assert.equal(await pollFor(gatepost, app, device), "authorization_pending");
    assert.equal(await pollFor(second, app, device), "authorization_pending");
    assert.equal(await pollFor(gatepost, app, device), "slow_down");
  });

  test("accept one of two simultaneous decisions", async () => {
    for (let round = 0; round < 5; round++) {
      const device = await newDevice(gatepost, app);
      const pages = await Promise.all([gatepost, second].map(async (at) => {
        const { browser, page } = await openVerify(at, user);
        return { browser, consent: await typeCode(browser, page, device.user_code) };
      }));
      const [first, other] = await Promise.all(pages.map(({ browser, consent }, index) =>
        browser.submit(consent, {}, index === 0 ? "allow" : "deny")
      ));
      const statuses = [first?.status ?? 0, other?.status ?? 0];
      assert.deepEqual(statuses.toSorted(), [200, 409]);
      const expected = first?.status === 200 ? "consumer orders" : "access_denied";
      assert.equal(await pollFor(gatepost, app, device), expected);
    }
  });
});

test("metadata has the device endpoint and grant, in profile 2.1 too (RFC 8628 §4)", async () => {
  const strict = await startGatepost({ env: { ...env, GATEPOST_PROFILE: "2.1" } });
  try {
    for (const at of [gatepost, strict]) {
      const path = "/.well-known/oauth-authorization-server";
      const metadata = readObject(await at.api.get(path));
      const endpoint = metadata["device_authorization_endpoint"];
      assert.equal(endpoint, `${ISSUER}/authorization/device`);
      const types = metadata["grant_types_supported"];
      assert.ok(Array.isArray(types) && types.includes(DEVICE_GRANT));
    }
    const strictApp = await strict.createApp({ grants });
    const device = await newDevice(strict, strictApp);
    await decide(strict, await strict.createUser(), device);
    readTokens(await poll(strict, strictApp, device));
  } finally {
    await strict.stop();
  }
});
