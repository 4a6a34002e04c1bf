import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { VARIABLES } from "../../src/config.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { sql } from "../../src/database/sql.ts";
import { openCommandLine, readJson } from "../helpers/command_line.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

test("check shows the value of every variable, but only whether a secret is set", async (t) => {
  const cli = await openCommandLine(t);
  const secrets = {
    GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    GATEPOST_METRICS_TOKEN: "metrics-token-0123456789",
    GATEPOST_ADMIN_PASSWORD: "admin-password",
  };

  const checked = await cli.runWith(
    { env: { ...secrets, GATEPOST_PORT: "0", GATEPOST_RESEND_DELAYS: "90s" } },
    "check",
  );

  assert.equal(checked.code, 0, checked.stderr);
  for (const { name } of VARIABLES) {
    assert.match(checked.stdout, new RegExp(`^  ${name} +\\S`, "m"));
  }
  assert.match(checked.stdout, /GATEPOST_PORT +0$/m);
  assert.match(checked.stdout, /GATEPOST_HOST +127\.0\.0\.1$/m);
  for (const [name, value] of Object.entries(secrets)) {
    assert.match(checked.stdout, new RegExp(`${name} +set$`, "m"));
    assert.ok(!(checked.stdout + checked.stderr).includes(value));
  }
});

test("check says that a database is missing, and makes none", async (t) => {
  const cli = await openCommandLine(t);

  const checked = await cli.run("check");

  assert.equal(checked.code, 0);
  assert.ok(checked.stdout.includes(cli.databasePath));
  assert.match(checked.stdout, /there is none yet/);
  assert.ok(!existsSync(cli.databasePath));
});

test("check counts the records of the database, and leaves no file beside it", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  await cli.run("app", "add", "Shop", "--url", "https://shop.example/");
  await cli.run("event", "dispatch", "order.created", "{}");
  const before = readFileSync(cli.databasePath);

  const { database } = readJson(await cli.run("check", "--json"));

  assert.deepEqual({ ...Object(database), bytes: 0 }, {
    path: cli.databasePath,
    state: "usable",
    bytes: 0,
    schema_version: Object(database).known_schema_version,
    known_schema_version: Object(database).known_schema_version,
    sealed: false,
    users: 1,
    apps: 1,
    subscriptions: 0,
    pending_events: 1,
    pending_deliveries: 0,
    failed_deliveries: 0,
  });
  assert.equal(Object(database).bytes, before.length);
  assert.deepEqual(readdirSync(cli.folder), ["gatepost.db"]);
  assert.ok(readFileSync(cli.databasePath).equals(before));
});

/** A file with which no server would start, and what check says about it. */
const UNUSABLE: readonly (readonly [name: string, make: (path: string) => void, says: RegExp])[] = [
  ["is not a database", (path) => writeFileSync(path, "x".repeat(5_000)), /not an SQLite database/],
  ["is a short text", (path) => writeFileSync(path, "hello"), /not an SQLite database/],
  [
    "is damaged",
    (path) => writeFileSync(path, "SQLite format 3\0".padEnd(5_000, "x")),
    /not a database|malformed/,
  ],
  ["is a folder", (path) => mkdirSync(path), /not an SQLite database/],
  [
    "is another program's",
    (path) => {
      const database = new DatabaseSync(path);
      database.exec("CREATE TABLE other (a)");
      database.close();
    },
    /belongs to another program/,
  ],
  [
    "is from a newer version",
    (path) => {
      const database = new DatabaseSync(path);
      database.exec("PRAGMA application_id = 0x47617465; PRAGMA user_version = 999");
      database.exec("CREATE TABLE settings (name, value)");
      database.close();
    },
    /schema version is 999/,
  ],
];

for (const [name, make, says] of UNUSABLE) {
  test(`check exits 1 on a database that ${name}, and leaves no file beside it`, async (t) => {
    const cli = await openCommandLine(t);
    make(cli.databasePath);
    const files = readdirSync(cli.folder);

    const checked = await cli.run("check");

    assert.equal(checked.code, 1);
    assert.match(checked.stderr, says);
    assert.ok(checked.stderr.includes(cli.databasePath));
    assert.deepEqual(readdirSync(cli.folder), files);
  });
}

test("check reads through a symbolic link what a server has just written", async (t) => {
  const cli = await openCommandLine(t);
  const link = join(cli.folder, "link.db");
  symlinkSync(cli.databasePath, link);
  await cli.run("user", "add", "alice");
  const server = openSqliteDatabase(cli.databasePath);
  try {
    await server.write([sql`DELETE FROM users`]);
    const env = { GATEPOST_DATABASE: link };
    const { database } = readJson(await cli.runWith({ env }, "check", "--json"));
    assert.equal(Object(database).users, 0);
  } finally {
    await server.close();
  }
});

test("check exits 1 where the database cannot be made", async (t) => {
  const cli = await openCommandLine(t);
  const file = join(cli.folder, "file");
  writeFileSync(file, "here");
  const env = { GATEPOST_DATABASE: join(file, "data", "gatepost.db") };

  const checked = await cli.runWith({ env }, "check");

  assert.equal(checked.code, 1);
  assert.match(checked.stderr, /file is not a folder/);
});

test("check exits 1 where the key of an encrypted database is missing or wrong", async (t) => {
  const cli = await openCommandLine(t);
  const keyOf = (...bytes: number[]) => ({
    GATEPOST_SECRET_KEY: bytes.map((byte) => Buffer.alloc(32, byte).toString("base64")).join(),
  });
  await cli.runWith({ env: keyOf(1) }, "user", "add", "alice");

  const missing = await cli.run("check");
  const wrong = await cli.runWith({ env: keyOf(2) }, "check");
  const right = await cli.runWith({ env: keyOf(1) }, "check");

  assert.match(missing.stderr, /GATEPOST_SECRET_KEY is missing/);
  assert.match(wrong.stderr, /GATEPOST_SECRET_KEY is not the key/);
  assert.deepEqual([missing.code, wrong.code, right.code], [1, 1, 0]);
  assert.match(right.stdout, /sealed +yes/);

  await cli.runWith({ env: keyOf(2, 1) }, "key", "rotate");
  const lacking = await cli.runWith({ env: keyOf(1) }, "check");
  const both = await cli.runWith({ env: keyOf(2, 1) }, "check");
  assert.match(lacking.stderr, /signing key k\w+ is sealed, and GATEPOST_SECRET_KEY lacks/);
  assert.deepEqual([lacking.code, both.code], [1, 0]);
});

test("check lists the routes and cronjobs of endpoint modules", async (t) => {
  const cli = await openCommandLine(t);

  const checked = await cli.runWith({ env: { GATEPOST_ENDPOINTS: ENDPOINTS } }, "check");

  assert.equal(checked.code, 0, checked.stderr);
  assert.match(checked.stdout, /^ {2}METHOD +PATH +ACCESS +EMITS +FILE$/m);
  assert.match(checked.stdout, /^ {2}POST +\/orders\/:id +orders +order\.created.*orders\.ts$/m);
  assert.match(checked.stdout, /^ {2}GET +\/ping +public +- /m);
  assert.match(checked.stdout, /^ {2}tick +5m +.+tick\.mjs$/m);
});

test("check warns of scopes without a description for the consent page", async (t) => {
  const cli = await openCommandLine(t);
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  const at = (path: string, scope: string) =>
    `{ method: "GET", path: "${path}", scope: ${scope}, emits, handle() {} }`;
  writeFileSync(
    join(folder, "orders.mjs"),
    `const emits = { paid: { description: "Paid", scope: "cash" } };
     export const one = ${at("/1", '["orders", "consumer"]')}, two = ${at("/2", '"refunds"')};
     export const scopes = { orders: "Place orders" };`,
  );

  const people = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check");
  const json = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check", "--json");

  assert.equal(people.code, 0, people.stderr);
  const [, warnings = ""] = people.stdout.split("\nWarnings\n");
  assert.match(warnings, /^ {2}Scope refunds has no desc.*scopes = \{ "refunds": "…" \}\n$/m);
  assert.match(warnings, /^ {2}Scope cash has no description /m, "the scope of an event");
  const { ok, warnings: listed } = readJson(json);
  assert.equal(ok, true);
  assert.deepEqual(listed, warnings.trim().split("\n  "));
});

test("check prints the output of a module to standard error", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  writeFileSync(join(cli.folder, "a.mjs"), 'console.log("loading"); console.table([1]);');
  const env = { GATEPOST_ENDPOINTS: cli.folder };
  const json = await cli.runWith({ env }, "check", "--json");
  assert.equal(readJson(json)["ok"], true);
  assert.match(json.stderr, /^loading\n┌/);
});

test("check warns of a path parameter in the notation of OpenAPI", async (t) => {
  const cli = await openCommandLine(t);
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  const at = (path: string) => `{ method: "GET", path: "${path}", public: true, handle() {} }`;
  const paths = ["/a/{id}", "/b/:id{x}", "/c{/:id}?", "/d/{e}?"];
  writeFileSync(join(folder, "a.mjs"), `export const all = [${paths.map(at)}];`);

  const json = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check", "--json");

  const { warnings } = readJson(json);
  assert.deepEqual([warnings].flat().filter((line) => !String(line).startsWith("GATEPOST_")), [
    'GET /a/{id} matches only the text "id"; write the parameter as :id',
  ]);
});

test("check warns of an event that two endpoints declare with different schemas", async (t) => {
  const cli = await openCommandLine(t);
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  const event = (schema?: object) => ({ description: "Paid", schema });
  const [text, number] = [event({ type: "string" }), event({ type: "number" })];
  const at = (path: string, emits: object) => `{ method: "GET", path: "${path}", public: true,
    emits: ${JSON.stringify(emits)}, handle() {} }`;
  const endpoints = [
    at("/a", { paid: text, same: text, once: text }),
    at("/b", { paid: number, same: text, once: event() }),
  ];
  writeFileSync(join(folder, "a.mjs"), `export const all = [${endpoints}];`);

  const json = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check", "--json");

  const { warnings } = readJson(json);
  assert.deepEqual([warnings].flat().filter((line) => !String(line).startsWith("GATEPOST_")), [
    "Event paid is declared with different schemas; the documents show the first",
  ]);
});

test("check lists exports and files that look like endpoints and are not served", async (t) => {
  const cli = await openCommandLine(t);
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  const file = join(folder, "orders.mjs");
  writeFileSync(file, 'export default { get: { method: "GET", path: "/" } };');
  writeFileSync(join(folder, "page.tsx"), "");

  const people = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check");
  const json = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check", "--json");

  assert.equal(people.code, 0, people.stderr);
  const section = /\nPassed over\n.*\n.*page\.tsx\n {2}default\.get {2}\S+orders\.mjs\n/;
  assert.match(people.stdout, section);
  assert.deepEqual(readJson(json)["passed_over"], [
    { file: join(folder, "page.tsx"), export: null },
    { file, export: "default.get" },
  ]);
});

test("check lists every load error of every module, and exits 1", async (t) => {
  const cli = await openCommandLine(t);
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  writeFileSync(join(folder, "syntax.js"), "export const = 1;");
  writeFileSync(
    join(folder, "shape.js"),
    'export const order = { method: "GOT", path: "/backend/x", handle() {} };',
  );

  const people = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check");
  const json = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check", "--json");

  assert.equal(people.code, 1);
  assert.match(people.stderr, /syntax\.js: SyntaxError/);
  assert.match(people.stderr, /shape\.js, export order: \/method Must be/);
  assert.match(people.stderr, /shape\.js, export order: \/scope Is required/);
  assert.equal(json.code, 1);
  const { ok, faults } = readJson(json);
  assert.equal(ok, false);
  assert.ok(Array.isArray(faults) && faults.length >= 3);
});

test("check exits 2 on a bad configuration, every error on a line of its own", async (t) => {
  const cli = await openCommandLine(t);

  const env = { GATEPOST_PORT: "x", GATEPOST_CRON: "maybe" };
  const checked = await cli.runWith({ env }, "check");

  assert.equal(checked.code, 2);
  assert.equal(checked.stderr.trimEnd().split("\n").length, 2);
});

test("check ends by itself when a module has left a timer running", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  const folder = join(cli.folder, "endpoints");
  mkdirSync(folder);
  writeFileSync(join(folder, "timer.js"), "setInterval(() => {}, 1000);");

  const checked = await cli.runWith({ env: { GATEPOST_ENDPOINTS: folder } }, "check");

  assert.equal(checked.code, 0);
});

test("check shows the warnings of the server's start", async (t) => {
  const cli = await openCommandLine(t);
  const env = { GATEPOST_BASE_URL: "http://api.example.com", GATEPOST_SECRET_KEY: "" };

  const people = await cli.runWith({ env }, "check");
  const json = readJson(await cli.runWith({ env }, "check", "--json"));

  assert.equal(people.code, 0);
  const warnings = /\nWarnings\n {2}GATEPOST_BASE_URL: .*\n {2}GATEPOST_SECRET_KEY: .*\n$/;
  assert.match(people.stdout, warnings);
  assert.equal(Array.isArray(json["warnings"]) && json["warnings"].length, 2);
});
