import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { passLogin } from "../helpers/authorize_pages.ts";
import {
  type Gatepost,
  PASSWORD,
  startGatepost,
  type TestApp,
  type TestUser,
} from "../helpers/gatepost.ts";
import { bearer } from "../helpers/requests.ts";
import { assertOAuthError, readObject, readTokens } from "../helpers/responses.ts";

let gatepost: Gatepost;
let user: TestUser;
/** Has scopes that the user has not, and lacks one that the user has. */
let app: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: ["consumer", "orders", "private"] });
  app = await gatepost.createApp({
    scopes: ["consumer", "orders", "extra", "backend"],
    grants: ["authorization_code", "client_credentials", "password"],
    trusted: true,
  });
});
after(() => gatepost.stop());

const passwordFields = () => ({
  grant_type: "password",
  username: user.username,
  password: user.password,
});

describe("scopes of client_credentials (RFC 6749 §3.3)", () => {
  const table: [requested: string | undefined, granted: string | undefined][] = [
    [undefined, "consumer orders extra"],
    ["", "consumer orders extra"],
    ["orders", "orders"],
    ["consumer orders", "consumer orders"],
    ["consumer,orders", "consumer orders"],
    ["consumer, orders", "consumer orders"],
    ["consumer ,, orders ", "consumer orders"],
    ["orders orders", "orders"],
    ["backend", "backend"],
    ["backend,consumer", "backend consumer"],
    ["other", undefined],
    ["orders other", undefined],
    ["ORDERS", undefined],
    ["private", undefined],
    ['or"ders', undefined],
    ["or\\ders", undefined],
    ["orders\n", undefined],
    ["orders\0", undefined],
    ["ördérs", undefined],
    ["x".repeat(65), undefined],
  ];
  for (const [requested, granted] of table) {
    test(`${JSON.stringify(requested)} gives ${granted ?? "invalid_scope"}`, async () => {
      const response = await gatepost.token(app, {
        grant_type: "client_credentials",
        ...(requested !== undefined && { scope: requested }),
      });
      if (granted === undefined) return assertOAuthError(response, 400, "invalid_scope");
      const sorted = readTokens(response).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
  }

  test("an app with scope backend alone gets invalid_scope unless it names backend", async () => {
    const admin = await gatepost.createApp({ scopes: ["backend"] });
    const fields = { grant_type: "client_credentials" };
    assertOAuthError(await gatepost.token(admin, fields), 400, "invalid_scope");
    readTokens(await gatepost.token(admin, { ...fields, scope: "backend" }));
  });
});

describe("a user's grant gets the app's scopes that the user has (RFC 6749 §3.3)", () => {
  const table: [requested: string | undefined, granted: string | undefined][] = [
    [undefined, "consumer orders"],
    ["orders", "orders"],
    ["orders extra", "orders"],
    ["orders backend", "orders"],
    ["extra", undefined],
    ["backend", undefined],
    ["private", undefined],
    ["consumer private", undefined],
  ];
  for (const [requested, granted] of table) {
    const name = `${JSON.stringify(requested)} gives ${granted ?? "invalid_scope"}`;
    const scope = requested === undefined ? {} : { scope: requested };
    test(`password: ${name}`, async () => {
      const response = await gatepost.token(app, { ...passwordFields(), ...scope });
      if (granted === undefined) return assertOAuthError(response, 400, "invalid_scope");
      const sorted = readTokens(response).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
    test(`authorization_code: ${name}`, async () => {
      const callback = await gatepost.allow(gatepost.openBrowser(), app, user, scope);
      const code = callback.searchParams.get("code");
      if (granted === undefined || code === null) {
        assert.equal(callback.searchParams.get("error"), "invalid_scope");
        assert.equal(granted, undefined);
        return;
      }
      const response = await gatepost.token(app, { grant_type: "authorization_code", code });
      const sorted = readTokens(response).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
  }

  test("backend is granted to a user who has it only if the request names it", async () => {
    const fields = { grant_type: "password", username: "admin", password: PASSWORD };
    assert.equal(readTokens(await gatepost.token(app, fields)).scope, "consumer");
    const named = await gatepost.token(app, { ...fields, scope: "backend" });
    assert.equal(readTokens(named).scope, "backend");
  });
});

describe("scopes that do not fit into a token of 8,192 characters", () => {
  const scopes = Array.from({ length: 100 }, (_, at) => `scope-${at}-`.padEnd(64, "x"));
  const some = scopes.slice(0, 50).join(" ");

  test("are invalid_scope for client_credentials and password; fewer are granted", async () => {
    const app = await gatepost.createApp({
      scopes,
      trusted: true,
      grants: ["authorization_code", "refresh_token", "client_credentials", "password"],
    });
    const user = await gatepost.createUser({ scopes });
    const { username, password } = user;
    const all: [string, Record<string, string>][] = [
      ["client_credentials", {}],
      ["password", { username, password }],
    ];
    for (const [grant_type, fields] of all) {
      const response = await gatepost.token(app, { grant_type, ...fields });
      assertOAuthError(response, 400, "invalid_scope");
      const fewer = readTokens(await gatepost.token(app, { grant_type, ...fields, scope: some }));
      assert.equal(await gatepost.isAlive(fewer.access_token), true);
    }
  });

  test("are invalid_scope at authorize before the user is asked, without a code", async () => {
    const app = await gatepost.createApp({ scopes });
    const user = await gatepost.createUser({ scopes });
    const browser = gatepost.openBrowser();
    const response = await passLogin(browser, await gatepost.authorize(browser, app), user);
    const { searchParams } = new URL(response.headers.get("location") ?? "");
    assert.equal(searchParams.get("error"), "invalid_scope");
    assert.equal(searchParams.get("code"), null);
    const code = await gatepost.code(app, user, { scope: some });
    const exchange = { grant_type: "authorization_code", code };
    const tokens = readTokens(await gatepost.token(app, exchange));
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
  });

  test("are a 400 problem at login, and no grant is stored", async () => {
    const user = await gatepost.createUser({ scopes });
    const { username, password } = user;
    const response = await gatepost.api.postJson("/consumer/login", { username, password });
    assert.equal(response.status, 400, response.text);
    assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json/);
    assert.equal(readObject(response)["type"], "urn:gatepost:problem:invalid_scope");
    const admin = bearer(gatepost.adminToken);
    const grants = await gatepost.api.get(`/backend/grant?user=${user.id}`, admin);
    assert.deepEqual(readObject(grants)["items"], []);
    await gatepost.change(user, { scopes: scopes.slice(0, 50) });
    assert.equal(await gatepost.isAlive(await gatepost.login(user)), true);
  });
});
