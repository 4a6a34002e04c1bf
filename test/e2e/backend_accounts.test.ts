import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  BAD_SCOPES,
  expectObject,
  type Item,
  startBackendStage,
} from "../helpers/backend_stage.ts";
import { PASSWORD } from "../helpers/gatepost.ts";
import { sendSlowly } from "../helpers/raw_http.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, expectStatus, readObject } from "../helpers/responses.ts";

const { gatepost, send } = await startBackendStage();
after(() => gatepost.stop());

const newUser = (more: object = {}) => ({ username: newName("u"), password: PASSWORD, ...more });

const BAD_PASSWORDS: readonly (readonly [string, unknown])[] = [
  ["a number", 12345678],
  ["null", null],
  ["7 bytes", "1234567"],
  ["1,025 bytes", "p".repeat(1025)],
  ["1,026 bytes in 513 letters", "ü".repeat(513)],
  ["half of a surrogate pair at its end", "long enough \ud83d"],
];

type BadUser = readonly [what: string, members: object, pointers: readonly string[]];

const BAD_MEMBERS: readonly BadUser[] = [
  ...BAD_PASSWORDS.map(([what, password]) =>
    [`a password of ${what}`, { password }, ["/password"]] as const
  ),
  ...BAD_SCOPES.map(([what, scopes, at]) => [`scopes with ${what}`, { scopes }, [at]] as const),
];

const BAD_NEW_USERS: readonly BadUser[] = [
  ["no user name", { username: undefined }, ["/username"]],
  ["a number as name", { username: 7 }, ["/username"]],
  ["an empty name", { username: "" }, ["/username"]],
  ["a name of 65 characters", { username: "a".repeat(65) }, ["/username"]],
  ["a space in the name", { username: "a b" }, ["/username"]],
  ["a slash in the name", { username: "a/b" }, ["/username"]],
  ["a letter beyond ASCII in the name", { username: "jürgen" }, ["/username"]],
  ["a line feed after the name", { username: "alice\n" }, ["/username"]],
  ["no password", { password: undefined }, ["/password"]],
  ...BAD_MEMBERS,
  ["an unknown member", { admin: true }, ["/admin"]],
  ["an unknown member with a slash", { "a/b~c": 1 }, ["/a~1b~0c"]],
  ["an invalid rate", { rate: "100" }, ["/rate"]],
  ["a number as rate", { rate: 100 }, ["/rate"]],
  ["a status", { status: "active" }, ["/status"]],
  [
    "every error at once",
    { username: "", password: "short", scopes: ["a b", "ok", 3], id: "u1" },
    ["/id", "/password", "/scopes/0", "/scopes/2", "/username"],
  ],
];

for (const [what, fields, pointers] of BAD_NEW_USERS) {
  test(`a new user with ${what} is refused with a pointer to each error`, async () => {
    const errors = assertProblem(await send("POST", "/backend/user", newUser(fields)), 400);
    assert.deepEqual(errors, pointers);
  });
}

for (const [name, body] of [["list", []], ["string", "x"], ["null", null]] as const) {
  test(`a JSON ${name} is refused as a new user and as a new app`, async () => {
    assert.deepEqual(assertProblem(await send("POST", "/backend/user", body), 400), [""]);
    assert.deepEqual(assertProblem(await send("POST", "/backend/app", body), 400), [""]);
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
  assert.deepEqual(await expectObject(200, send("GET", location)), record);
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
    assert.equal((await gatepost.tryLogin(user)).status, 200);
  });
}

test("a new user has scope consumer by default, and may have no scope", async () => {
  const first = await expectObject(201, send("POST", "/backend/user", newUser()));
  assert.deepEqual(first["scopes"], ["consumer"]);
  const second = await expectObject(201, send("POST", "/backend/user", newUser({ scopes: [] })));
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

const BAD_USER_CHANGES: readonly BadUser[] = [
  ...BAD_MEMBERS,
  ["an unknown status", { status: "locked" }, ["/status"]],
  ["null as status", { status: null }, ["/status"]],
  ["a user name, which cannot change", { username: "other" }, ["/username"]],
  [
    "every error at once",
    { password: "x", scopes: [1], status: 1, id: "u" },
    ["/id", "/password", "/scopes/0", "/status"],
  ],
];

test("an invalid change of a user is refused with every error and changes nothing", async () => {
  const user = await gatepost.createUser();
  const path = `/backend/user/${user.id}`;
  const before = await expectObject(200, send("GET", path));
  for (const [what, change, pointers] of BAD_USER_CHANGES) {
    const errors = assertProblem(await send("PATCH", path, { scopes: ["x"], ...change }), 400);
    assert.deepEqual(errors, pointers, what);
  }
  assert.deepEqual(await expectObject(200, send("GET", path)), before);
  assert.equal((await gatepost.tryLogin(user)).status, 200);
});

test("an empty change of a user changes nothing", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  const before = await expectObject(200, send("GET", `/backend/user/${user.id}`));
  assert.deepEqual(await expectObject(200, send("PATCH", `/backend/user/${user.id}`, {})), before);
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
      const page = await expectObject(200, send("GET", `/backend/${kind}?limit=2${cursor}`));
      const items = page["items"] as Item[];
      assert.ok(items.length <= 2);
      listed.push(...items.map((item) => item["id"] ?? item["client_id"]));
      next = page["next_cursor"];
    } while (next !== null);
    assert.deepEqual(listed.slice(0, 3), made);
    assert.equal(new Set(listed).size, listed.length);
    const all = await expectObject(200, send("GET", `/backend/${kind}?limit=200`));
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
      assert.deepEqual(assertProblem(await response, 400), ["/limit"]);
    });
  }

  test(`a list of ${kind}s refuses an invalid cursor, but no unknown parameter`, async () => {
    const bad = send("GET", `/backend/${kind}?cursor=%27%20OR&limit=0`);
    assert.deepEqual(assertProblem(await bad, 400), ["/cursor", "/limit"]);
    await expectStatus(200, send("GET", `/backend/${kind}?colour=red`));
  });
}

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
    const stored = await expectObject(200, send("GET", path));
    assert.deepEqual(stored["scopes"], ["consumer"]);
    if (kind === "app") assert.equal(stored["trusted"], false);
  });
}

test("simultaneous changes of a user's status and password are both stored", async () => {
  const user = await gatepost.createUser();
  for (let i = 0; i < 5; i++) {
    const password = `a new long password ${i}`;
    await Promise.all([
      gatepost.change(user, { password }),
      gatepost.change(user, { status: "disabled" }),
    ]);
    const record = await expectObject(200, send("GET", `/backend/user/${user.id}`));
    assert.equal(record["status"], "disabled");
    await gatepost.change(user, { status: "active" });
    assert.equal((await gatepost.tryLogin({ ...user, password })).status, 200);
  }
});
