import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { sql } from "../../src/database/sql.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { createSqliteEngine } from "../../src/database/sqlite_engine.ts";
import { makeFolder, openDatabase } from "../helpers/database.ts";
import { put } from "../helpers/put.ts";
import { openFile } from "./sqlite_stage.ts";

/** Ways to lose an open file, and to bring it back where that is possible. */
const LOSSES: readonly (readonly [
  what: string,
  lose: (path: string) => void,
  restore: ((path: string) => void) | undefined,
])[] = [
  ["removed", (path) => rmSync(path), undefined],
  ["moved away", (path) => renameSync(path, `${path}.away`), (path) =>
    renameSync(`${path}.away`, path)],
  ["replaced by a copy", (path) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(path, `${path}.away`);
    renameSync(`${path}.copy`, path);
  }, (path) => renameSync(`${path}.away`, path)],
  ["left without its log", (path) => rmSync(`${path}-wal`), undefined],
  ["left without the index of its log", (path) => rmSync(`${path}-shm`), undefined],
  ["not accessible", (path) => { // as if the process may no longer enter its folder
    renameSync(path, `${path}.away`);
    symlinkSync(path, path);
  }, (path) => renameSync(`${path}.away`, path)],
];

for (const [what, lose, restore] of LOSSES) {
  test(`while the file is ${what} writes are refused and queries succeed`, async (t) => {
    const { database, path, refusals } = openFile(t);
    await database.write([put("before")]);
    lose(path);
    for (const name of ["a", "b"]) {
      await assert.rejects(database.write([put(name)]), UnavailableError);
    }
    assert.deepEqual(refusals, [undefined, "replaced", "replaced"]);
    assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 1);

    if (restore === undefined) return;
    restore(path);
    assert.deepEqual(await database.write([put("after")]), [1]);
    assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 2);
  });
}

test("state() is `replaced` if the file is no longer accessible", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = await createSqliteEngine(path).open();
  t.after(() => database.close());
  assert.equal(database.state(), "ok");
  renameSync(path, `${path}.away`);
  symlinkSync(path, path);
  assert.equal(database.state(), "replaced");
});

/** A database, its refusals, and a statement that needs a damaged page of it. */
function openDamaged(t: TestContext) {
  const { database, path, refusals } = openFile(t);
  spoilTable(path, "audit");
  const audit = sql`INSERT INTO audit (id, actor, action, target) VALUES ('t1', 'a', 'b', 'c')`;
  return { database, refusals, audit };
}

test("only statements that need a damaged page fail, and the reason is reported", async (t) => {
  const { database, refusals, audit } = openDamaged(t);
  await assert.rejects(database.write([audit]), UnavailableError);
  await assert.rejects(database.query(sql`SELECT * FROM audit`), UnavailableError);
  assert.deepEqual(await database.write([put("a")]), [1]);
  assert.deepEqual(refusals, ["damaged", undefined]);
});

test("a damaged page does not fail the writes that gather meanwhile", async (t) => {
  const { database, refusals, audit } = openDamaged(t);
  const first = database.write([audit]);
  await new Promise((resolve) => setImmediate(resolve)); // its commit has begun
  const gathered = ["a", "b"].map((name) => database.write([put(name)]));
  await assert.rejects(first, UnavailableError);
  assert.deepEqual(await Promise.all(gathered), [[1], [1]]);
  assert.deepEqual(refusals, ["damaged", undefined]);
});

test("writes are refused after the log is removed, even if the path is a link", async (t) => {
  const folder = makeFolder(t);
  const [link, path] = [join(folder, "link.db"), join(folder, "data", "gatepost.db")];
  mkdirSync(join(folder, "data"));
  symlinkSync(path, link);
  const database = await createSqliteEngine(link).open();
  t.after(() => database.close());
  await database.write([put("a")]);
  rmSync(`${path}-wal`);
  await assert.rejects(database.write([put("b")]), UnavailableError);
});

test("while the link leads to another file writes are refused", async (t) => {
  const [path, other, link] = ["gatepost.db", "other.db", "link.db"]
    .map((name) => join(makeFolder(t), name));
  assert.ok(path && other && link);
  prepareSqliteFile(path);
  copyFileSync(path, other);
  const linkTo = (file: string) => {
    rmSync(link, { force: true });
    symlinkSync(file, link);
  };
  linkTo(path);
  const database = await createSqliteEngine(link).open();
  t.after(() => database.close());
  await database.write([put("a")]);
  linkTo(other);
  await assert.rejects(database.write([put("b")]), UnavailableError);
  linkTo(path);
  assert.deepEqual(await database.write([put("c")]), [1]);
});

test("close() after the file was replaced leaves the new file's log unchanged", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const old = openSqliteDatabase(path);
  await old.write([put("old")]);
  for (const suffix of ["", "-wal", "-shm"]) renameSync(path + suffix, `${path}.away${suffix}`);
  const database = openDatabase(t, path);
  await database.write([put("new")]);
  await old.close();
  assert.ok(existsSync(`${path}-wal`));
  await database.write([put("newer")]);
  const names = await database.query(sql`SELECT name FROM settings ORDER BY name`);
  assert.deepEqual(names.map((row) => Object(row).name), ["new", "newer"]);
});

test("close() after the log was removed overwrites nothing that others wrote", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = openSqliteDatabase(path);
  await database.write(Array.from({ length: 100 }, (_, number) => put(`own ${number}`)));
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix);
  const runElsewhere = (script: string) =>
    String(execFileSync(process.execPath, ["-e", `const { DatabaseSync } = require("node:sqlite");
      const file = new DatabaseSync(${JSON.stringify(path)});${script}`]));
  // As a server that starts beside it: its own log is copied into the file.
  runElsewhere(`const insert = file.prepare("INSERT INTO settings (name, value) VALUES (?, ?)");
    for (let number = 0; number < 300; number++) insert.run("other " + number, "x".repeat(300));
    file.exec("PRAGMA wal_checkpoint(TRUNCATE)");`);
  assert.equal(statSync(`${path}-wal`).size, 0);
  await assert.rejects(database.write([put("late")]), UnavailableError);
  await database.close();
  const others = "SELECT count(*) AS count FROM settings WHERE name GLOB 'other *'";
  const found = runElsewhere(`console.log(file.prepare("PRAGMA integrity_check").get(),
    file.prepare("${others}").get().count);`);
  assert.match(found, /integrity_check: 'ok' } 300$/m);
});

test("close() after the log's index was removed loses nothing that others wrote", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = openSqliteDatabase(path);
  await database.write([put("own")]);
  rmSync(`${path}-shm`);
  const runElsewhere = (statement: string) =>
    execFileSync(process.execPath, ["-e", `const { DatabaseSync } = require("node:sqlite");
      const other = new DatabaseSync(${JSON.stringify(path)});
      console.log(...other.prepare(${JSON.stringify(statement)}).all().map(({ name }) => name));`]);
  runElsewhere("INSERT INTO settings (name, value) VALUES ('other', '')");
  await database.close();
  assert.equal(String(runElsewhere("SELECT name FROM settings ORDER BY name")), "other own\n");
});

test("close() after the log was removed loses no acknowledged write", async (t) => {
  for (const gone of [["-wal"], ["-wal", "-shm"]]) {
    const path = join(makeFolder(t), "gatepost.db");
    const database = openSqliteDatabase(path);
    await database.write([put("own")]);
    for (const suffix of gone) rmSync(path + suffix);
    await assert.rejects(database.write([put("refused")]), UnavailableError);
    // As a command that only reads.
    execFileSync(process.execPath, ["-e", `const { DatabaseSync } = require("node:sqlite");
      new DatabaseSync(${JSON.stringify(path)}).exec("PRAGMA user_version");`]);
    await database.close();
    using file = new DatabaseSync(path);
    const names = file.prepare("SELECT name FROM settings").all().map(({ name }) => name);
    assert.deepEqual(names, ["own"]);
  }
});

/** Overwrites the first page of a table. */
function spoilTable(path: string, table: string): void {
  const connection = new DatabaseSync(path);
  connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const select = connection.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?");
  const at = (Number(select.get(table)?.["rootpage"]) - 1) * 4096;
  connection.close();
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, at);
  closeSync(file);
}
