import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertErrorPage, assertErrorRedirect } from "../helpers/authorize_pages.ts";
import { DEVICE_GRANT } from "../helpers/device.ts";
import { openCommandLine, readJson } from "../helpers/command_line.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { lookUp } from "../helpers/openapi_rules.ts";
import { basicAuth, bearer, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, readObject, readTokens } from "../helpers/responses.ts";

const LISTED = { redirect_uris: ["https://app.example/cb"], trusted: true };
const METADATA = "/.well-known/oauth-authorization-server";

describe("an app that demands PKCE (require_pkce)", () => {
  let gatepost: Gatepost;
  let user: TestUser;
  let app: TestApp;
  before(async () => {
    gatepost = await startGatepost();
    user = await gatepost.createUser();
    app = await gatepost.createApp({ require_pkce: true, trusted: true });
  });
  after(() => gatepost.stop());

  test("gets invalid_request for an authorize request without code_challenge", async () => {
    const browser = gatepost.openBrowser();
    const response = await gatepost.authorize(browser, app, { state: "s" });
    assertErrorRedirect(gatepost, response, app, { error: "invalid_request", state: "s" });
  });

  test("gets tokens with PKCE, and without it once require_pkce is false", async () => {
    assert.ok((await gatepost.codeTokens(app, user)).access_token);
    await gatepost.change(app, { require_pkce: false });
    const fields = { grant_type: "authorization_code", code: await gatepost.code(app, user) };
    readTokens(await gatepost.token(app, fields));
  });
});

describe("GATEPOST_PROFILE=2.1", () => {
  let first: Gatepost;
  let gatepost: Gatepost;
  let user: TestUser;
  /** Created before the profile was set. */
  let unlisted: TestApp;
  let app: TestApp;
  before(async () => {
    first = await startGatepost();
    const { folder } = first.server;
    user = await first.createUser();
    unlisted = await first.createApp({ trusted: true });
    const grants = ["authorization_code", "refresh_token", "password"];
    app = await first.createApp({ ...LISTED, grants });
    gatepost = await startGatepost({ folder, env: { GATEPOST_PROFILE: "2.1" } });
  });
  after(async () => {
    await gatepost.stop();
    await first.stop();
  });

  const add = (fields: object) =>
    gatepost.api.postJson("/backend/app", { name: "App", url: "https://app.example", ...fields },
      bearer(gatepost.adminToken));
  const patch = (of: TestApp, fields: object) =>
    gatepost.api.sendJson("PATCH", `/backend/app/${of.id}`, fields, bearer(gatepost.adminToken));
  const pointersOf = (text: string) => {
    const { errors }: { errors: { pointer: string }[] } = JSON.parse(text);
    return errors.map(({ pointer }) => pointer);
  };

  test("demands PKCE of a confidential app", async () => {
    const response = await gatepost.authorize(gatepost.openBrowser(), app);
    assertErrorRedirect(gatepost, response, app, { error: "invalid_request" });
    assert.ok((await gatepost.codeTokens(app, user)).refresh_token);
  });

  test("refuses the sign-in of an app without redirect_uris, on a page that says why", async () => {
    const { challenge } = newPkce();
    const response = await gatepost.authorize(gatepost.openBrowser(), unlisted, challenge);
    assertErrorPage(response);
    assert.match(response.text, /lists no redirect_uris/);
  });

  test("refuses the password grant as unsupported, even if the app may use it", async () => {
    const { username, password } = user;
    const fields = { grant_type: "password", username, password };
    assertOAuthError(await gatepost.token(app, fields), 400, "unsupported_grant_type");
  });

  test("has no password grant in its metadata", async () => {
    const metadata = readObject(await gatepost.api.get(METADATA));
    const grants = ["authorization_code", "refresh_token", "client_credentials", DEVICE_GRANT];
    assert.deepEqual(metadata["grant_types_supported"], grants);
    assert.deepEqual(metadata["code_challenge_methods_supported"], ["S256"]);
    assert.equal(metadata["require_pushed_authorization_requests"], undefined);
  });

  test("removes the password grant from the OpenAPI document", async () => {
    for (const [at, isThere] of [[gatepost, false], [first, true]] as const) {
      const document = readObject(await at.api.get("/openapi.json"));
      const path = "#/components/schemas/TokenRequest/properties/grant_type/enum";
      const types = lookUp(document, path);
      assert.ok(Array.isArray(types) && types.includes("client_credentials"));
      assert.equal(types.includes("password"), isThere);
      const flows = lookUp(document, "#/components/securitySchemes/oauth2/flows");
      assert.equal("password" in Object(flows), isThere);
    }
  });

  test("refuses a new app for the code grant without redirect_uris", async () => {
    for (const fields of [{}, { redirect_uris: null }]) {
      const response = await add(fields);
      assert.equal(response.status, 400);
      assert.deepEqual(pointersOf(response.text), ["/redirect_uris"]);
    }
    assert.equal((await add(LISTED)).status, 201);
    const machine = { grants: ["client_credentials"] };
    assert.equal((await add(machine)).status, 201);
  });

  test("refuses a change that leaves an active app without redirect_uris", async () => {
    for (const fields of [{ name: "Renamed" }, { redirect_uris: null }]) {
      const response = await patch(unlisted, fields);
      assert.deepEqual([response.status, pointersOf(response.text)], [400, ["/redirect_uris"]]);
    }
    assert.equal((await patch(unlisted, { status: "disabled" })).status, 200);
    assert.equal((await patch(unlisted, { status: "active" })).status, 400);
    assert.equal((await patch(unlisted, { status: "active", ...LISTED })).status, 200);
    assert.ok((await gatepost.codeTokens(unlisted, user)).access_token);
  });

  test("issues tokens for client credentials", async () => {
    const machine = readObject(await add({ grants: ["client_credentials"] }));
    const of = { id: String(machine["client_id"]), secret: String(machine["client_secret"]) };
    const fields = { grant_type: "client_credentials" };
    readTokens(await gatepost.api.postForm("/authorization/token", fields, basicAuth(of)));
  });
});

test("gatepost check and the start warn of apps that the profile refuses to sign in", async (t) => {
  const first = await startGatepost();
  const { id } = await first.createApp();
  await first.createApp(LISTED);
  const { folder } = first.server;
  const env = { GATEPOST_PROFILE: "2.1" };
  const strict = await startGatepost({ folder, env });
  const line = `GATEPOST_PROFILE: 2.1 refuses the sign-ins of app ${id}, which lists no ` +
    "redirect_uris";
  const warned = (text: string) => text.split("\n").filter((each) => each.includes(line)).length;
  assert.equal(warned(strict.server.lines.join("\n")), 1);
  const cli = await openCommandLine(t, { folder, env });
  const report = readJson(await cli.run("check", "--json"));
  assert.equal(warned(JSON.stringify(report["warnings"])), 1);
  await strict.stop();
  await first.stop();
});
