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
import { VARIABLES } from "../../src/config.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { sql } from "../../src/database/sql.ts";
import { openCommandLine, readJson } from "../helpers/command_line.ts";

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

test("check exits 2 on a bad configuration, every error on a line of its own", async (t) => {
  const cli = await openCommandLine(t);

  const env = { GATEPOST_PORT: "x", GATEPOST_CRON: "maybe" };
  const checked = await cli.runWith({ env }, "check");

  assert.equal(checked.code, 2);
  assert.equal(checked.stderr.trimEnd().split("\n").length, 2);
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
