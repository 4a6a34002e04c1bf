import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { UnusableDatabaseError } from "../../src/database/database.ts";
import { judgeDatabase } from "../../src/database/judge.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { APPLICATION_ID, NEWEST_VERSION } from "../../src/database/migrations.ts";
import { openSqlite } from "../../src/database/sqlite_file.ts";
import { makeFolder } from "../helpers/database.ts";
import { runNode } from "../helpers/process.ts";
import { modeOf, newFile, pragmas, run } from "./sqlite_stage.ts";

test("prepareSqliteFile() creates a file with mode 0600 and its folders with mode 0700", (t) => {
  const folder = makeFolder(t);
  const umask = process.umask(0);
  t.after(() => process.umask(umask));
  const path = join(folder, "one", "two", "gatepost.db");
  prepareSqliteFile(path);
  assert.equal(modeOf(path), 0o600);
  assert.equal(modeOf(join(folder, "one", "two")), 0o700);
  assert.equal(modeOf(join(folder, "one")), 0o700);
});

test("prepareSqliteFile() creates the file with mode 0600 under a strict umask, too", (t) => {
  const folder = makeFolder(t);
  const umask = process.umask(0o277);
  try {
    prepareSqliteFile(join(folder, "gatepost.db"));
  } finally {
    process.umask(umask);
  }
  assert.equal(modeOf(join(folder, "gatepost.db")), 0o600);
});

test("prepareSqliteFile() does not change the mode of an existing folder and file", (t) => {
  const folder = join(makeFolder(t), "data");
  mkdirSync(folder);
  chmodSync(folder, 0o750);
  const path = join(folder, "gatepost.db");
  writeFileSync(path, "");
  chmodSync(path, 0o640);
  prepareSqliteFile(path);
  assert.equal(modeOf(folder), 0o750);
  assert.equal(modeOf(path), 0o640);
});

test("a new file has our application id, the newest version and a write-ahead log", (t) => {
  const path = newFile(t);
  assert.deepEqual(pragmas(path, ["application_id", "user_version", "journal_mode"]), [
    APPLICATION_ID,
    NEWEST_VERSION,
    "wal",
  ]);
});

test("every table is STRICT", (t) => {
  using connection = openSqlite(newFile(t), { readOnly: true });
  const tables = connection.prepare(
    "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'",
  ).all();
  assert.ok(tables.length > 10);
  assert.deepEqual(tables.filter((table) => table["strict"] !== 1), []);
});

test("prepareSqliteFile() fills an empty file and an empty database", (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, "empty"), "");
  run(join(folder, "vacant"), "PRAGMA user_version = 1; CREATE TABLE t (x); DROP TABLE t");
  for (const name of ["empty", "vacant"]) {
    prepareSqliteFile(join(folder, name));
    assert.equal(countSettings(join(folder, name)), 0);
  }
});

test("judgeDatabase() refuses an emptied file and does not change its log", (t) => {
  const path = newFile(t);
  truncateSync(path);
  writeFileSync(`${path}-wal`, "a log");
  const state = judgeDatabase(path, createSeal());
  assert.match(state.kind === "unusable" ? state.reason : "", /gone or empty, and its log/);
  assert.equal(readFileSync(`${path}-wal`, "utf8"), "a log");
});

describe("prepareSqliteFile() refuses, and leaves unchanged,", () => {
  const table: [what: string, make: (path: string) => void, reason: RegExp][] = [
    ["a newer version of this program's database", (path) => {
      prepareSqliteFile(path);
      run(path, `PRAGMA user_version = ${NEWEST_VERSION + 1}`);
    }, /newer/i],
    ["a much newer version with other tables", (path) => {
      run(path, `CREATE TABLE t (x); PRAGMA application_id = ${APPLICATION_ID};
        PRAGMA user_version = 1000`);
    }, /newer/i],
    ["another program's database", (path) => {
      run(path, "CREATE TABLE notes (x)");
    }, /another program/],
    ["another program's database with our version number", (path) => {
      run(path, `CREATE TABLE notes (x); PRAGMA user_version = ${NEWEST_VERSION}`);
    }, /another program/],
    ["another program's database with its own application id", (path) => {
      run(path, "CREATE TABLE notes (x); PRAGMA application_id = 1234; PRAGMA user_version = 9");
    }, /another program/],
    ["another program's database with a write-ahead log", (path) => {
      run(path, "PRAGMA journal_mode = WAL; CREATE TABLE notes (x)");
    }, /another program/],
    ["one byte", (path) => writeFileSync(path, "x"), /not an SQLite database/],
    ["a short text", (path) => writeFileSync(path, "hello\n"), /not an SQLite database/],
    ["a few zeros", (path) => writeFileSync(path, Buffer.alloc(10)), /not an SQLite database/],
    ["a page of zeros", (path) => {
      writeFileSync(path, Buffer.alloc(4096));
    }, /not an SQLite database/],
    ["a long text", (path) => {
      writeFileSync(path, "hello\n".repeat(10_000));
    }, /not an SQLite database/],
    ["the beginning of SQLite's header", (path) => writeFileSync(path, "SQLite format"), /./],
    ["SQLite's header alone", (path) => writeFileSync(path, "SQLite format 3\0"), /./],
    ["SQLite's header with noise after it", (path) => {
      const noise = Buffer.alloc(20_000, "noise");
      writeFileSync(path, Buffer.concat([Buffer.from("SQLite format 3\0"), noise]));
    }, /./],
    ["our own database cut in its first page", (path) => {
      prepareSqliteFile(path);
      writeFileSync(path, readFileSync(path).subarray(0, 2_000));
    }, /./],
  ];
  for (const [what, make, reason] of table) {
    test(what, (t) => {
      const path = join(makeFolder(t), "gatepost.db");
      make(path);
      const before = readFileSync(path);
      assert.throws(() => prepareSqliteFile(path), (error: unknown) => {
        assert.ok(error instanceof UnusableDatabaseError, String(error));
        assert.match(error.message, reason);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      });
      assert.deepEqual(readFileSync(path), before);
    });
  }
});

test("prepareSqliteFile() throws UnusableDatabaseError if the path cannot be a file", (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, "file"), "");
  for (const path of [folder, join(folder, "file", "gatepost.db")]) {
    assert.throws(() => prepareSqliteFile(path), UnusableDatabaseError);
  }
});

test("prepareSqliteFile() waits while another process makes the database", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeFileSync(path, "");
  const program = `const { DatabaseSync } = await import("node:sqlite");
    const maker = new DatabaseSync(${JSON.stringify(path)});
    maker.exec("BEGIN EXCLUSIVE; CREATE TABLE t (x)");
    console.log("making");
    setTimeout(() => maker.exec("ROLLBACK"), 1_500);`;
  const maker = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(maker, "exit");
  await once(maker.stdout, "data");
  prepareSqliteFile(path);
  assert.equal(countSettings(path), 0);
  await ended;
});

test("several processes may make a database at once", async (t) => {
  const path = join(makeFolder(t), "data", "gatepost.db");
  const module = import.meta.resolve("../../src/database/migrate.ts");
  const file = import.meta.resolve("../../src/database/sqlite_file.ts");
  const startMs = Date.now() + 1_000;
  const program = `
    const { prepareSqliteFile } = await import(${JSON.stringify(module)});
    const { openSqlite } = await import(${JSON.stringify(file)});
    while (Date.now() < ${startMs});
    prepareSqliteFile(${JSON.stringify(path)});
    const connection = openSqlite(${JSON.stringify(path)}, { readOnly: false });
    connection.exec("INSERT INTO settings (name, value) VALUES (" + process.pid + ", '')");
    connection.close();
  `;
  const results = await Promise.all(
    Array.from({ length: 4 }, () => runNode(["--input-type=module", "-e", program])),
  );
  assert.deepEqual(results.map(({ code, stderr }) => [code, stderr]), results.map(() => [0, ""]));
  assert.equal(countSettings(path), 4);
  assert.deepEqual(pragmas(path, ["user_version", "journal_mode"]), [NEWEST_VERSION, "wal"]);
});

function countSettings(path: string): number {
  using connection = new DatabaseSync(path);
  return connection.prepare("SELECT 1 FROM settings").all().length;
}
