import assert from "node:assert/strict";
import { after, test } from "node:test";
import { BAD_SCOPES, expectObject, startBackendStage } from "../helpers/backend_stage.ts";
import type { TestApp } from "../helpers/gatepost.ts";
import { assertProblem, expectStatus, readObject } from "../helpers/responses.ts";

const { gatepost, send } = await startBackendStage();
after(() => gatepost.stop());

const newApp = (more: object = {}) => ({ name: "App", url: "https://app.example", ...more });

const BAD_URIS: readonly (readonly [string, unknown, string])[] = [
  ["a string instead of a list", "https://app.example/cb", "/redirect_uris"],
  ["another origin", ["https://app.example/cb", "https://evil.example/cb"], "/redirect_uris/1"],
  ["a fragment", ["https://app.example/cb#x"], "/redirect_uris/0"],
  ["a dot segment", ["https://app.example/a/../cb"], "/redirect_uris/0"],
  ["a number", [1], "/redirect_uris/0"],
];

const BAD_APP_MEMBERS: readonly (readonly [string, object, readonly string[]])[] = [
  ["a number as name", { name: 1 }, ["/name"]],
  ["an empty name", { name: "" }, ["/name"]],
  ["a name of spaces", { name: "   " }, ["/name"]],
  ["a name of 101 characters", { name: "n".repeat(101) }, ["/name"]],
  ["a line feed in the name", { name: "a\nb" }, ["/name"]],
  ["half of a surrogate pair in the name", { name: "a\ud83d" }, ["/name"]],
  ["a string that is not a URL", { url: "app.example" }, ["/url"]],
  ["plain http", { url: "http://app.example" }, ["/url"]],
  ["another scheme", { url: "ftp://app.example" }, ["/url"]],
  ["a query in the URL", { url: "https://app.example/?a=1" }, ["/url"]],
  ["a fragment in the URL", { url: "https://app.example/#a" }, ["/url"]],
  ["credentials in the URL", { url: "https://me@app.example" }, ["/url"]],
  ["a URL that is not canonical", { url: "https://APP.example" }, ["/url"]],
  ["the default port in the URL", { url: "https://app.example:443" }, ["/url"]],
  ...BAD_SCOPES.map(([what, scopes, at]) => [`scopes with ${what}`, { scopes }, [at]] as const),
  ["an unknown grant", { grants: ["refresh_token", "implicit"] }, ["/grants/1"]],
  ["a string as grants", { grants: "refresh_token" }, ["/grants"]],
  ...BAD_URIS.map(([what, uris, at]) =>
    [`redirect URIs with ${what}`, { redirect_uris: uris }, [at]] as const
  ),
  ["a string as trusted", { trusted: "yes" }, ["/trusted"]],
  ["a number as resource_server", { resource_server: 1 }, ["/resource_server"]],
  ["a string as require_pkce", { require_pkce: "yes" }, ["/require_pkce"]],
  ["a list as jwks", { jwks: [] }, ["/jwks"]],
  ["a client_secret", { client_secret: "s" }, ["/client_secret"]],
];

const BAD_NEW_APPS: readonly (readonly [string, object, readonly string[]])[] = [
  ["no name", { name: undefined }, ["/name"]],
  ["no URL", { url: undefined }, ["/url"]],
  ["an unknown type", { type: "native" }, ["/type"]],
  [
    "client_credentials for a public app",
    { type: "public", grants: ["client_credentials"] },
    ["/grants/0"],
  ],
  [
    "a public resource server",
    { type: "public", resource_server: true },
    ["/resource_server"],
  ],
  ["a status", { status: "active" }, ["/status"]],
  ...BAD_APP_MEMBERS,
  [
    "every error at once",
    {
      name: "",
      url: "http://app.example",
      type: "x",
      scopes: [1],
      grants: ["y"],
      redirect_uris: {},
      trusted: 1,
      resource_server: 0,
      z: 1,
    },
    [
      "/grants/0",
      "/name",
      "/redirect_uris",
      "/resource_server",
      "/scopes/0",
      "/trusted",
      "/type",
      "/url",
      "/z",
    ],
  ],
];

for (const [what, fields, pointers] of BAD_NEW_APPS) {
  test(`a new app with ${what} is refused with a pointer to each error`, async () => {
    const errors = assertProblem(await send("POST", "/backend/app", newApp(fields)), 400);
    assert.deepEqual(errors, pointers);
  });
}

test("an invalid change of an app is refused with every error and changes nothing", async () => {
  const app = await gatepost.createApp();
  const path = `/backend/app/${app.id}`;
  const before = await expectObject(200, send("GET", path));
  const changes: typeof BAD_APP_MEMBERS = [
    ...BAD_APP_MEMBERS,
    ["a type, which cannot change", { type: "public" }, ["/type"]],
    ["an unknown status", { status: "gone" }, ["/status"]],
    ["a client_id", { client_id: "a1" }, ["/client_id"]],
  ];
  for (const [what, change, pointers] of changes) {
    const errors = assertProblem(await send("PATCH", path, { trusted: true, ...change }), 400);
    assert.deepEqual(errors, pointers, what);
  }
  assert.deepEqual(await expectObject(200, send("GET", path)), before);
});

test("a new app has the default members, and its secret is shown once", async () => {
  const response = await send("POST", "/backend/app", newApp());
  assert.equal(response.status, 201, response.text);
  const { client_secret: secret, ...record } = readObject(response);
  assert.match(String(record["client_id"]), /^a[0-9a-z]+$/);
  assert.match(String(secret), /^[\w-]{43}$/);
  assert.deepEqual({ ...record, client_id: "", created_at: "" }, {
    client_id: "",
    name: "App",
    url: "https://app.example",
    type: "confidential",
    scopes: ["consumer"],
    grants: ["authorization_code", "refresh_token", "client_credentials"],
    redirect_uris: [],
    redirect_rule: "prefix",
    trusted: false,
    resource_server: false,
    rate: null,
    require_pkce: false,
    jwks: null,
    metadata_url: null,
    owner: null,
    status: "active",
    created_at: "",
  });
  assert.equal(response.headers.get("cache-control"), "no-store");
  const location = new URL(response.location ?? "").pathname;
  assert.deepEqual(await expectObject(200, send("GET", location)), record);
});

test("a public app has no secret and not the grant client_credentials", async () => {
  const app = newApp({ type: "public", url: "http://127.0.0.1" });
  const record = await expectObject(201, send("POST", "/backend/app", app));
  assert.equal("client_secret" in record, false);
  assert.deepEqual(record["grants"], ["authorization_code", "refresh_token"]);
  await expectStatus(409, send("POST", `/backend/app/${record["client_id"]}/secret`));
});

test("every changeable member of an app can be changed in one request", async () => {
  const app = await gatepost.createApp();
  const change = {
    name: "Renamed",
    url: "https://other.example/app",
    scopes: ["orders"],
    grants: ["password"],
    redirect_uris: ["https://other.example/app/cb"],
    trusted: true,
    resource_server: true,
    rate: "100/1m",
    require_pkce: true,
    jwks: {
      keys: [{ kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }],
    },
    owner: (await gatepost.createUser()).id,
    status: "disabled",
  };
  const changed = await expectObject(200, send("PATCH", `/backend/app/${app.id}`, change));
  const stored = await expectObject(200, send("GET", `/backend/app/${app.id}`));
  assert.deepEqual(changed, stored);
  const { client_id: _, created_at: __, type, redirect_rule: rule, ...members } = stored;
  const expected = { ...change, metadata_url: null };
  assert.deepEqual([members, type, rule], [expected, "confidential", "listed"]);
});

test("only null removes redirect URIs, and the response names the rule that applies", async () => {
  const uri = "https://app.example/cb";
  const app = await gatepost.createApp({ redirect_uris: [uri] });
  const path = `/backend/app/${app.id}`;
  assert.deepEqual(assertProblem(await send("PATCH", path, { redirect_uris: [] }), 400), [
    "/redirect_uris",
  ]);
  const kept = await expectObject(200, send("GET", path));
  assert.deepEqual([kept["redirect_uris"], kept["redirect_rule"]], [[uri], "listed"]);
  const removed = await expectObject(200, send("PATCH", path, { redirect_uris: null }));
  assert.deepEqual([removed["redirect_uris"], removed["redirect_rule"]], [[], "prefix"]);
  const none = newApp({ redirect_uris: null });
  const made = await expectObject(201, send("POST", "/backend/app", none));
  assert.equal(made["redirect_rule"], "prefix");
  assertProblem(await send("POST", "/backend/app", newApp({ redirect_uris: [] })), 400);
});

test("an app's URL cannot change to one that its redirect URIs do not match", async () => {
  const app = await gatepost.createApp({ redirect_uris: ["https://app.example/cb"] });
  const path = `/backend/app/${app.id}`;
  const url = "https://new.example";
  assert.deepEqual(assertProblem(await send("PATCH", path, { url }), 400), ["/url"]);
  await expectStatus(200, send("PATCH", path, { url, redirect_uris: [`${url}/cb`] }));
});

test("simultaneous changes of three members of an app are all stored", async () => {
  const app = await gatepost.createApp();
  for (let i = 0; i < 5; i++) {
    await Promise.all([
      gatepost.change(app, { name: `Name ${i}` }),
      gatepost.change(app, { status: "disabled" }),
      gatepost.change(app, { trusted: i % 2 === 0 }),
    ]);
    const record = await expectObject(200, send("GET", `/backend/app/${app.id}`));
    assert.deepEqual(
      [record["name"], record["status"], record["trusted"]],
      [`Name ${i}`, "disabled", i % 2 === 0],
    );
    await gatepost.change(app, { status: "active" });
  }
});

const isSecretValid = async (app: TestApp, secret: string) =>
  (await gatepost.token({ ...app, secret }, { grant_type: "client_credentials" })).status === 200;

test("the last two secrets of an app are valid, and older ones are not", async () => {
  const app = await gatepost.createApp();
  const rotate = () => expectObject(200, send("POST", `/backend/app/${app.id}/secret`));
  const { client_id: id, client_secret: second } = await rotate();
  assert.equal(id, app.id);
  for (const secret of [app.secret, String(second)]) assert.ok(await isSecretValid(app, secret));
  const { client_secret: third } = await rotate();
  const secrets = [app.secret, String(second), String(third)];
  assert.deepEqual(await Promise.all(secrets.map((secret) => isSecretValid(app, secret))), [
    false,
    true,
    true,
  ]);
});

test("a new secret with revoke ends the old one at once", async () => {
  const app = await gatepost.createApp();
  const path = `/backend/app/${app.id}/secret`;
  const bad = send("POST", path, { revoke: "yes", x: 1 });
  assert.deepEqual(assertProblem(await bad, 400), ["/revoke", "/x"]);
  assert.equal(await isSecretValid(app, app.secret), true);
  const { client_secret: secret } = await expectObject(200, send("POST", path, { revoke: true }));
  assert.equal(await isSecretValid(app, app.secret), false);
  assert.equal(await isSecretValid(app, String(secret)), true);
});
