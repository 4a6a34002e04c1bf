import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  assertOAuthError,
  bearer,
  type Gatepost,
  newName,
  PASSWORD,
  readObject,
  readTokens,
  sendSlowly,
  startGatepost,
  type TestApp,
  type TestUser,
} from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";

let gatepost: Gatepost;

before(async () => {
  gatepost = await startGatepost();
});

after(() => gatepost.stop());

type Item = Readonly<Record<string, unknown>>;

function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = bearer(gatepost.adminToken),
): Promise<ClientResponse> {
  return gatepost.api.sendJson(method, path, body, headers);
}

async function expectStatus(status: number, response: Promise<ClientResponse>): Promise<Item> {
  const given = await response;
  assert.equal(given.status, status, given.text);
  return given.text === "" ? {} : readObject(given);
}

/** Checks a 400 in the form of RFC 9457, and returns the pointers of its errors. */
async function expectErrors(response: Promise<ClientResponse>): Promise<unknown[]> {
  const given = await response;
  assert.equal(given.status, 400, given.text);
  assert.equal(given.headers.get("content-type"), "application/problem+json");
  const problem = readObject(given);
  assert.match(String(problem["type"]), /^urn:gatepost:problem:[a-z_]+$/);
  assert.deepEqual([problem["status"], problem["title"]], [400, "Bad Request"]);
  const errors = problem["errors"] as Item[];
  for (const { detail } of errors) assert.ok(typeof detail === "string" && detail !== "");
  return errors.map(({ pointer }) => pointer);
}

const newUser = (more: object = {}) => ({ username: newName("u"), password: PASSWORD, ...more });
const newApp = (more: object = {}) => ({ name: "App", url: "https://app.example", ...more });

const tryLogin = (username: string, password: string): Promise<ClientResponse> =>
  gatepost.api.postJson("/consumer/login", { username, password });

const createPasswordApp = (more: Item = {}) =>
  gatepost.createApp({ grants: ["password", "refresh_token", "client_credentials"], ...more });

const BAD_SCOPES: readonly (readonly [string, unknown, string])[] = [
  ["a string instead of a list", "consumer", "/scopes"],
  ["null instead of a list", null, "/scopes"],
  ["a number in the list", ["consumer", 1], "/scopes/1"],
  ["an empty name", [""], "/scopes/0"],
  ["a comma", ["a,b"], "/scopes/0"],
  ["a space", ["a b"], "/scopes/0"],
  ["a quote", ['a"b'], "/scopes/0"],
  ["a backslash", ["a\\b"], "/scopes/0"],
  ["a letter beyond ASCII", ["grün"], "/scopes/0"],
  ["a name of 65 characters", ["a".repeat(65)], "/scopes/0"],
];

const BAD_PASSWORDS: readonly (readonly [string, unknown])[] = [
  ["a number", 12345678],
  ["null", null],
  ["7 bytes", "1234567"],
  ["1,025 bytes", "p".repeat(1025)],
  ["1,026 bytes in 513 letters", "ü".repeat(513)],
  ["half of a surrogate pair at its end", "long enough \ud83d"],
];

const BAD_NEW_USERS: readonly (readonly [string, object, readonly string[]])[] = [
  ["no user name", { username: undefined }, ["/username"]],
  ["a number as name", { username: 7 }, ["/username"]],
  ["an empty name", { username: "" }, ["/username"]],
  ["a name of 65 characters", { username: "a".repeat(65) }, ["/username"]],
  ["a space in the name", { username: "a b" }, ["/username"]],
  ["a slash in the name", { username: "a/b" }, ["/username"]],
  ["a letter beyond ASCII in the name", { username: "jürgen" }, ["/username"]],
  ["a line feed after the name", { username: "alice\n" }, ["/username"]],
  ["no password", { password: undefined }, ["/password"]],
  ...BAD_PASSWORDS.map(([what, password]) =>
    [`a password of ${what}`, { password }, ["/password"]] as const
  ),
  ...BAD_SCOPES.map(([what, scopes, at]) => [`scopes with ${what}`, { scopes }, [at]] as const),
  ["an unknown member", { admin: true }, ["/admin"]],
  ["an unknown member with a slash", { "a/b~c": 1 }, ["/a~1b~0c"]],
  ["an invalid rate", { rate: "100" }, ["/rate"]],
  ["a number as rate", { rate: 100 }, ["/rate"]],
  ["a status", { status: "active" }, ["/status"]],
  [
    "every error at once",
    { username: "", password: "short", scopes: ["a b", "ok", 3], id: "u1" },
    ["/username", "/password", "/scopes/0", "/scopes/2", "/id"],
  ],
];

for (const [what, fields, pointers] of BAD_NEW_USERS) {
  test(`a new user with ${what} is refused with a pointer to each error`, async () => {
    const errors = await expectErrors(send("POST", "/backend/user", newUser(fields)));
    assert.deepEqual(errors, pointers);
  });
}

for (const [name, body] of [["list", []], ["string", "x"], ["null", null]] as const) {
  test(`a JSON ${name} is refused as a new user and as a new app`, async () => {
    assert.deepEqual(await expectErrors(send("POST", "/backend/user", body)), [""]);
    assert.deepEqual(await expectErrors(send("POST", "/backend/app", body)), [""]);
  });
}

test("the record of a new user has no password and is found at its Location", async () => {
  const user = newUser({ scopes: ["consumer", "orders"] });
  const response = await send("POST", "/backend/user", user);
  assert.equal(response.status, 201, response.text);
  const record = readObject(response);
  assert.match(String(record["id"]), /^u[0-9a-z]+$/);
  assert.ok(Math.abs(Date.now() - Date.parse(String(record["created_at"]))) < 60_000);
  assert.deepEqual({ ...record, id: "", created_at: "" }, {
    id: "",
    username: user.username,
    scopes: ["consumer", "orders"],
    rate: null,
    status: "active",
    created_at: "",
  });
  assert.equal(response.headers.get("cache-control"), "no-store");
  const location = new URL(response.location ?? "").pathname;
  assert.deepEqual(await expectStatus(200, send("GET", location)), record);
});

const GOOD_USERS: readonly (readonly [string, object])[] = [
  ["every character that a name may have", { username: `A-z0._@+${newName("")}` }],
  ["a name of 64 characters", { username: newName("u").padEnd(64, "x") }],
  ["a password of 8 bytes in 4 letters", { password: "üüüü" }],
  ["a password of 1,024 bytes", { password: "p".repeat(1024) }],
  ["spaces in the password", { password: "  a  b  c  " }],
];

for (const [what, more] of GOOD_USERS) {
  test(`a user with ${what} can log in`, async () => {
    const user = newUser(more);
    await expectStatus(201, send("POST", "/backend/user", user));
    assert.equal((await tryLogin(user.username, user.password)).status, 200);
  });
}

test("a new user has scope consumer by default, and may have no scope", async () => {
  const first = await expectStatus(201, send("POST", "/backend/user", newUser()));
  assert.deepEqual(first["scopes"], ["consumer"]);
  const second = await expectStatus(201, send("POST", "/backend/user", newUser({ scopes: [] })));
  assert.deepEqual(second["scopes"], []);
});

test("a user name that exists is refused, also in upper case", async () => {
  const { username } = await gatepost.createUser();
  for (const name of [username, username.toUpperCase()]) {
    await expectStatus(409, send("POST", "/backend/user", newUser({ username: name })));
  }
});

test("exactly one of six simultaneous requests for a user name succeeds", async () => {
  const user = newUser();
  const responses = await Promise.all(
    Array.from({ length: 6 }, () => send("POST", "/backend/user", user)),
  );
  const statuses = responses.map(({ status }) => status).toSorted();
  assert.deepEqual(statuses, [201, 409, 409, 409, 409, 409]);
});

const BAD_USER_CHANGES: readonly (readonly [string, object, readonly string[]])[] = [
  ...BAD_PASSWORDS.map(([what, password]) =>
    [`a password of ${what}`, { password }, ["/password"]] as const
  ),
  ...BAD_SCOPES.map(([what, scopes, at]) => [`scopes with ${what}`, { scopes }, [at]] as const),
  ["an unknown status", { status: "locked" }, ["/status"]],
  ["null as status", { status: null }, ["/status"]],
  ["a user name, which cannot change", { username: "other" }, ["/username"]],
  [
    "every error at once",
    { password: "x", scopes: [1], status: 1, id: "u" },
    ["/password", "/scopes/0", "/status", "/id"],
  ],
];

test("an invalid change of a user is refused with every error and changes nothing", async () => {
  const user = await gatepost.createUser();
  const path = `/backend/user/${user.id}`;
  const before = await expectStatus(200, send("GET", path));
  for (const [what, change, pointers] of BAD_USER_CHANGES) {
    const errors = await expectErrors(send("PATCH", path, { scopes: ["x"], ...change }));
    assert.deepEqual(errors, pointers, what);
  }
  assert.deepEqual(await expectStatus(200, send("GET", path)), before);
  assert.equal((await tryLogin(user.username, user.password)).status, 200);
});

test("an empty change of a user changes nothing", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  const before = await expectStatus(200, send("GET", `/backend/user/${user.id}`));
  assert.deepEqual(await expectStatus(200, send("PATCH", `/backend/user/${user.id}`, {})), before);
  assert.equal(await gatepost.isAlive(token), true);
});

for (const [kind, id] of [["user", "u0"], ["user", "%00"], ["app", "a0"], ["app", "login"]]) {
  test(`/backend/${kind}/${id}, which does not exist, is 404 for every method`, async () => {
    const path = `/backend/${kind}/${id}`;
    await expectStatus(404, send("GET", path));
    await expectStatus(404, send("PATCH", path, { scopes: [] }));
    await expectStatus(404, send("DELETE", path));
  });
}

const CLOSED: readonly (readonly [string, string])[] = [
  ["GET", "/backend/user"],
  ["POST", "/backend/user"],
  ["GET", "/backend/user/u0"],
  ["PATCH", "/backend/user/u0"],
  ["DELETE", "/backend/user/u0"],
  ["GET", "/backend/app"],
  ["POST", "/backend/app"],
  ["GET", "/backend/app/a0"],
  ["PATCH", "/backend/app/a0"],
  ["DELETE", "/backend/app/a0"],
  ["POST", "/backend/app/a0/secret"],
];

test("users and apps need a token with scope backend", async () => {
  const token = await gatepost.login(await gatepost.createUser());
  for (const [method, path] of CLOSED) {
    await expectStatus(401, send(method, path, undefined, {}));
    await expectStatus(403, send(method, path, undefined, bearer(token)));
  }
});

test("a body that is not JSON or has another media type is refused", async () => {
  const headers = bearer(gatepost.adminToken);
  const post = (type: string, body: string) =>
    gatepost.api.send("POST", "/backend/user", {
      headers: { ...headers, "content-type": type },
      body,
    });
  assert.equal((await post("application/json", "{")).status, 400);
  assert.equal((await post("text/plain", JSON.stringify(newUser()))).status, 415);
  assert.equal((await post("application/merge-patch+json", JSON.stringify(newUser()))).status, 201);
});

for (const [kind, create] of [
  ["user", () => gatepost.createUser()],
  ["app", () => gatepost.createApp()],
] as const) {
  test(`a list of ${kind}s is newest first, and its pages hold each one once`, async () => {
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.unshift((await create()).id);
    const listed: unknown[] = [];
    let next: unknown = "";
    do {
      const cursor = next === "" ? "" : `&cursor=${next}`;
      const page = await expectStatus(200, send("GET", `/backend/${kind}?limit=2${cursor}`));
      const items = page["items"] as Item[];
      assert.ok(items.length <= 2);
      listed.push(...items.map((item) => item["id"] ?? item["client_id"]));
      next = page["next_cursor"];
    } while (next !== null);
    assert.deepEqual(listed.slice(0, 3), made);
    assert.equal(new Set(listed).size, listed.length);
    const all = await expectStatus(200, send("GET", `/backend/${kind}?limit=200`));
    assert.equal((all["items"] as Item[]).length, listed.length);
    assert.equal(all["next_cursor"], null);
  });

  test(`a list of ${kind}s is not cached`, async () => {
    const response = await send("GET", `/backend/${kind}`);
    assert.equal(response.headers.get("cache-control"), "no-store");
  });

  for (const limit of ["0", "201", "-1", "1.5", "ten", "1e1", "0x5"]) {
    test(`a list of ${kind}s with limit=${limit} is refused`, async () => {
      const response = send("GET", `/backend/${kind}?limit=${limit}`);
      assert.deepEqual(await expectErrors(response), ["/limit"]);
    });
  }

  test(`a list of ${kind}s refuses an invalid cursor, but no unknown parameter`, async () => {
    const bad = send("GET", `/backend/${kind}?cursor=%27%20OR&limit=0`);
    assert.deepEqual((await expectErrors(bad)).toSorted(), ["/cursor", "/limit"]);
    await expectStatus(200, send("GET", `/backend/${kind}?colour=red`));
  });
}

/** Everything that lets somebody act for a user. */
interface Credentials {
  readonly loginToken: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly code: string;
  readonly browser: Client;
  readonly app: TestApp;
}

async function createCredentials(user: TestUser): Promise<Credentials> {
  const app = await gatepost.createApp({ trusted: true });
  const tokens = await gatepost.codeTokens(app, user);
  const browser = gatepost.openBrowser();
  const code = (await gatepost.allow(browser, app, user)).searchParams.get("code") ?? "";
  return {
    loginToken: await gatepost.login(user),
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    code,
    browser,
    app,
  };
}

/** Whether each is valid: login token, access token, refresh token, code, browser session. */
async function probe(credentials: Credentials): Promise<Item> {
  const { app, code } = credentials;
  return {
    loginToken: await gatepost.isAlive(credentials.loginToken),
    accessToken: await gatepost.isAlive(credentials.accessToken),
    code: (await gatepost.token(app, { grant_type: "authorization_code", code })).status === 200,
    refreshToken: (await gatepost.refresh(app, credentials.refreshToken)).status === 200,
    browser: (await gatepost.authorize(credentials.browser, app)).status === 303,
  };
}

const ALIVE = {
  loginToken: true,
  accessToken: true,
  code: true,
  refreshToken: true,
  browser: true,
};
const DEAD = {
  loginToken: false,
  accessToken: false,
  code: false,
  refreshToken: false,
  browser: false,
};

const ENDINGS: readonly (readonly [string, (user: TestUser) => Promise<unknown>])[] = [
  ["disabling a user", (user) => gatepost.change(user, { status: "disabled" })],
  [
    "disabling and enabling a user",
    async (user) => {
      await gatepost.change(user, { status: "disabled" });
      await gatepost.change(user, { status: "active" });
    },
  ],
  ["a new password", (user) => gatepost.change(user, { password: "a new long password" })],
  ["setting the same password again", (user) => gatepost.change(user, { password: user.password })],
  ["deleting a user", (user) => expectStatus(204, send("DELETE", `/backend/user/${user.id}`))],
];

for (const [what, end] of ENDINGS) {
  test(`${what} ends the login tokens, grants, codes and browser sessions`, async () => {
    const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
    const credentials = await createCredentials(user);
    const spared = await createCredentials(neighbour);
    await end(user);
    assert.deepEqual(await probe(credentials), DEAD);
    assert.deepEqual(await probe(spared), ALIVE);
  });
}

test("a disabled user is refused like an unknown one until enabled again", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  await gatepost.change(user, { status: "disabled" });
  const refused = await tryLogin(user.username, user.password);
  const unknown = await tryLogin(newName("nobody"), user.password);
  const problemOf = ({ text }: ClientResponse) => ({ ...JSON.parse(text), request_id: "" });
  assert.deepEqual([refused.status, problemOf(refused)], [401, problemOf(unknown)]);
  const { username, password } = user;
  const response = await gatepost.token(app, { grant_type: "password", username, password });
  assertOAuthError(response, 400, "invalid_grant");
  await gatepost.change(user, { status: "active" });
  assert.equal(await gatepost.isAlive(await gatepost.login(user)), true);
});

test("after a change of password only the new one works for a login", async () => {
  const user = await gatepost.createUser();
  await gatepost.change(user, { password: "a new long password" });
  assert.equal((await tryLogin(user.username, user.password)).status, 401);
  assert.equal((await tryLogin(user.username, "a new long password")).status, 200);
});

test("a login that is under way while the password changes leaves no valid token", async () => {
  const user = await gatepost.createUser();
  const login = () => tryLogin(user.username, user.password);
  const logins = Array.from({ length: 4 }, login); // most of these come before the change
  // The new password waits in the queue of hashes, so these logins come before it is stored.
  const changed = gatepost.change(user, { password: "a new long password" });
  logins.push(...Array.from({ length: 12 }, login));
  await changed;
  for (const { status, text } of await Promise.all(logins)) {
    if (status === 200) assert.equal(await gatepost.isAlive(JSON.parse(text).token), false);
  }
});

test("a login that is under way while a scope is removed does not get that scope", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const logins = Promise.all(
    Array.from({ length: 12 }, () => tryLogin(user.username, user.password)),
  );
  await gatepost.change(user, { scopes: ["consumer"] });
  for (const { status, text } of await logins) {
    if (status !== 200) continue;
    const response = await gatepost.api.get(
      "/authorization/whoami",
      bearer(JSON.parse(text).token),
    );
    const scope = response.status === 200 ? readObject(response)["scope"] : "consumer";
    assert.equal(scope, "consumer");
  }
});

test("simultaneous changes of a user's status and password are both stored", async () => {
  const user = await gatepost.createUser();
  for (let i = 0; i < 5; i++) {
    await Promise.all([
      gatepost.change(user, { password: `a new long password ${i}` }),
      gatepost.change(user, { status: "disabled" }),
    ]);
    const record = await expectStatus(200, send("GET", `/backend/user/${user.id}`));
    assert.equal(record["status"], "disabled");
    await gatepost.change(user, { status: "active" });
    assert.equal((await tryLogin(user.username, `a new long password ${i}`)).status, 200);
  }
});

test("simultaneous changes of three members of an app are all stored", async () => {
  const app = await gatepost.createApp();
  for (let i = 0; i < 5; i++) {
    await Promise.all([
      gatepost.change(app, { name: `Name ${i}` }),
      gatepost.change(app, { status: "disabled" }),
      gatepost.change(app, { trusted: i % 2 === 0 }),
    ]);
    const record = await expectStatus(200, send("GET", `/backend/app/${app.id}`));
    assert.deepEqual(
      [record["name"], record["status"], record["trusted"]],
      [`Name ${i}`, "disabled", i % 2 === 0],
    );
    await gatepost.change(app, { status: "active" });
  }
});

test("removing a user's scope revokes the grants that carry it, and no others", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const app = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const carries = await gatepost.passwordTokens(app, user, { scope: "consumer orders" });
  const spared = await gatepost.passwordTokens(app, user, { scope: "consumer" });
  const login = await gatepost.login(user);
  await gatepost.change(user, { scopes: ["consumer", "stock"] });
  assert.equal(await gatepost.isAlive(carries.access_token), false);
  assertOAuthError(await gatepost.refresh(app, carries.refresh_token), 400, "invalid_grant");
  assert.equal(await gatepost.isAlive(login), false, "a login token carries every scope");
  assert.equal(await gatepost.isAlive(spared.access_token), true);
  readTokens(await gatepost.refresh(app, spared.refresh_token));
  assert.equal((await tryLogin(user.username, user.password)).status, 200);
});

for (const kind of ["user", "app"] as const) {
  test(`removing a scope of a ${kind} ends the codes with it, even if given back`, async () => {
    const scopes = ["consumer", "orders"];
    const user = await gatepost.createUser({ scopes });
    const app = await gatepost.createApp({ scopes });
    const carries = await gatepost.code(app, user);
    const spared = await gatepost.code(app, user, { scope: "consumer" });
    const party = kind === "user" ? user : app;
    await gatepost.change(party, { scopes: ["consumer"] });
    await gatepost.change(party, { scopes });
    const exchange = (code: string) =>
      gatepost.token(app, { grant_type: "authorization_code", code });
    assertOAuthError(await exchange(carries), 400, "invalid_grant");
    assert.equal(readTokens(await exchange(spared)).scope, "consumer");
  });
}

test("giving a user another scope revokes nothing", async () => {
  const user = await gatepost.createUser();
  const credentials = await createCredentials(user);
  await gatepost.change(user, { scopes: ["consumer", "orders"] });
  assert.deepEqual(await probe(credentials), ALIVE);
});

test("removing a scope keeps grants with scopes whose names begin with its name", async () => {
  const user = await gatepost.createUser({ scopes: ["order", "orders", "order.read"] });
  const app = await createPasswordApp({ scopes: ["orders", "order.read"] });
  const spared = await gatepost.passwordTokens(app, user);
  await gatepost.change(user, { scopes: ["orders", "order.read"] });
  assert.equal(await gatepost.isAlive(spared.access_token), true);
});

test("a deleted user's name is free again, and the next user of it inherits nothing", async () => {
  const user = await gatepost.createUser();
  const credentials = await createCredentials(user);
  await expectStatus(204, send("DELETE", `/backend/user/${user.id}`));
  const { username } = user;
  const record = await expectStatus(201, send("POST", "/backend/user", newUser({ username })));
  assert.notEqual(record["id"], user.id);
  assert.deepEqual(await probe(credentials), DEAD);
});

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
    const errors = await expectErrors(send("POST", "/backend/app", newApp(fields)));
    assert.deepEqual(errors.toSorted(), pointers);
  });
}

test("an invalid change of an app is refused with every error and changes nothing", async () => {
  const app = await gatepost.createApp();
  const path = `/backend/app/${app.id}`;
  const before = await expectStatus(200, send("GET", path));
  const changes: typeof BAD_APP_MEMBERS = [
    ...BAD_APP_MEMBERS,
    ["a type, which cannot change", { type: "public" }, ["/type"]],
    ["an unknown status", { status: "gone" }, ["/status"]],
    ["a client_id", { client_id: "a1" }, ["/client_id"]],
  ];
  for (const [what, change, pointers] of changes) {
    const errors = await expectErrors(send("PATCH", path, { trusted: true, ...change }));
    assert.deepEqual(errors, pointers, what);
  }
  assert.deepEqual(await expectStatus(200, send("GET", path)), before);
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
  assert.deepEqual(await expectStatus(200, send("GET", location)), record);
});

test("a public app has no secret and not the grant client_credentials", async () => {
  const app = newApp({ type: "public", url: "http://127.0.0.1" });
  const record = await expectStatus(201, send("POST", "/backend/app", app));
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
  const changed = await expectStatus(200, send("PATCH", `/backend/app/${app.id}`, change));
  const stored = await expectStatus(200, send("GET", `/backend/app/${app.id}`));
  assert.deepEqual(changed, stored);
  const { client_id: _, created_at: __, type, redirect_rule: rule, ...members } = stored;
  const expected = { ...change, metadata_url: null };
  assert.deepEqual([members, type, rule], [expected, "confidential", "listed"]);
});

test("an app that moves to another origin loses its consents and codes", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ url: "https://old.example/app" });
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  const within = { ...app, url: "https://old.example/", redirectUri: "https://old.example/new" };
  await gatepost.change(app, { url: within.url });
  const callback = await gatepost.authorize(browser, within);
  assert.equal(callback.status, 303, "the same origin is the same app");
  const code = new URL(callback.location ?? "").searchParams.get("code") ?? "";
  const moved = { ...app, url: "https://new.example", redirectUri: "https://new.example/cb" };
  await gatepost.change(app, { url: moved.url });
  assert.equal((await gatepost.authorize(browser, moved)).status, 200, "the consent page");
  const exchange = { grant_type: "authorization_code", code };
  assertOAuthError(await gatepost.token(app, exchange), 400, "invalid_grant");
});

test("only null removes redirect URIs, and the response names the rule that applies", async () => {
  const uri = "https://app.example/cb";
  const app = await gatepost.createApp({ redirect_uris: [uri] });
  const path = `/backend/app/${app.id}`;
  assert.deepEqual(await expectErrors(send("PATCH", path, { redirect_uris: [] })), [
    "/redirect_uris",
  ]);
  const kept = await expectStatus(200, send("GET", path));
  assert.deepEqual([kept["redirect_uris"], kept["redirect_rule"]], [[uri], "listed"]);
  const removed = await expectStatus(200, send("PATCH", path, { redirect_uris: null }));
  assert.deepEqual([removed["redirect_uris"], removed["redirect_rule"]], [[], "prefix"]);
  const none = newApp({ redirect_uris: null });
  const made = await expectStatus(201, send("POST", "/backend/app", none));
  assert.equal(made["redirect_rule"], "prefix");
  await expectErrors(send("POST", "/backend/app", newApp({ redirect_uris: [] })));
});

for (const kind of ["app", "user"] as const) {
  test(`a slow change of a ${kind} overwrites what was changed meanwhile`, async () => {
    const party = kind === "app" ? await gatepost.createApp() : await gatepost.createUser();
    const path = `/backend/${kind}/${party.id}`;
    const flag = kind === "app" ? { trusted: false } : {};
    const finish = await sendSlowly(gatepost.url, "PATCH", path, {
      head: {
        Authorization: bearer(gatepost.adminToken).authorization,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ scopes: ["consumer"], ...flag }),
    });
    const meanwhile = kind === "app" ? { trusted: true } : {};
    await gatepost.change(party, { scopes: ["consumer", "orders"], ...meanwhile });
    assert.equal((await finish()).status, 200);
    const stored = await expectStatus(200, send("GET", path));
    assert.deepEqual(stored["scopes"], ["consumer"]);
    if (kind === "app") assert.equal(stored["trusted"], false);
  });
}

test("an app's URL cannot change to one that its redirect URIs do not match", async () => {
  const app = await gatepost.createApp({ redirect_uris: ["https://app.example/cb"] });
  const path = `/backend/app/${app.id}`;
  const url = "https://new.example";
  assert.deepEqual(await expectErrors(send("PATCH", path, { url })), ["/url"]);
  await expectStatus(200, send("PATCH", path, { url, redirect_uris: [`${url}/cb`] }));
});

test("disabling an app ends its tokens and codes, and enabling it revives none", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp({
    grants: ["password", "refresh_token", "client_credentials", "authorization_code"],
  });
  const tokens = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const code = await gatepost.code(app, user);
  const spared = await gatepost.login(user);
  await gatepost.change(app, { status: "disabled" });
  for (const { access_token: token } of [tokens, own]) {
    assert.equal(await gatepost.isAlive(token), false);
  }
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 401, "invalid_client");
  assert.equal((await gatepost.authorize(gatepost.openBrowser(), app)).status, 400);
  await gatepost.change(app, { status: "active" });
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 400, "invalid_grant");
  const exchange = { grant_type: "authorization_code", code };
  assertOAuthError(await gatepost.token(app, exchange), 400, "invalid_grant");
  readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  assert.equal(await gatepost.isAlive(spared), true);
});

test("removing an app's scope revokes its grants that carry it, and no others", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const app = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const another = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const carries = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const narrow = await gatepost.passwordTokens(app, user, { scope: "consumer" });
  const ofAnother = await gatepost.passwordTokens(another, user);
  await gatepost.change(app, { scopes: ["consumer"] });
  const alive = [carries, own, narrow, ofAnother]
    .map(({ access_token: token }) => gatepost.isAlive(token));
  assert.deepEqual(await Promise.all(alive), [false, false, true, true]);
  assertOAuthError(await gatepost.refresh(app, carries.refresh_token), 400, "invalid_grant");
});

test("deleting an app ends its tokens and removes it from its users' grants", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const tokens = await gatepost.codeTokens(app, user);
  await expectStatus(204, send("DELETE", `/backend/app/${app.id}`));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 401, "invalid_client");
  await expectStatus(404, send("GET", `/backend/app/${app.id}`));
  const grants = await gatepost.api.get("/consumer/grant", bearer(await gatepost.login(user)));
  assert.deepEqual(readObject(grants)["items"], []);
});

test("disabling a user or an app disables its subscriptions", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const body = { event: "order.created", endpoint: "https://hooks.example/in" };
  for (const token of [await gatepost.login(user), own.access_token]) {
    await expectStatus(201, send("POST", "/consumer/subscription", body, bearer(token)));
  }
  for (const party of [user, app]) {
    await gatepost.change(party, { status: "disabled" });
    await gatepost.change(party, { status: "active" });
  }
  const again = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  for (const token of [await gatepost.login(user), again.access_token]) {
    const { items } = await expectStatus(
      200,
      send("GET", "/consumer/subscription", undefined, bearer(token)),
    );
    assert.deepEqual((items as Item[]).map(({ status }) => status), ["disabled"]);
  }
});

const isSecretValid = async (app: TestApp, secret: string) =>
  (await gatepost.token({ ...app, secret }, { grant_type: "client_credentials" })).status === 200;

test("the last two secrets of an app are valid, and older ones are not", async () => {
  const app = await gatepost.createApp();
  const rotate = () => expectStatus(200, send("POST", `/backend/app/${app.id}/secret`));
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
  assert.deepEqual(await expectErrors(bad), ["/revoke", "/x"]);
  assert.equal(await isSecretValid(app, app.secret), true);
  const { client_secret: secret } = await expectStatus(200, send("POST", path, { revoke: true }));
  assert.equal(await isSecretValid(app, app.secret), false);
  assert.equal(await isSecretValid(app, String(secret)), true);
});
