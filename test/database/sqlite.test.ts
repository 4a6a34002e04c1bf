import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import {
  type Database,
  OutcomeUnknownError,
  type Refusal,
  UnavailableError,
  UnusableDatabaseError,
} from "../../src/database/database.ts";
import type { Log } from "../../src/base/log.ts";
import { sql, sqlText } from "../../src/database/sql.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { openSharedDatabase } from "../../src/database/shared_database.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { createSqliteEngine } from "../../src/database/sqlite_engine.ts";
import { createGroupWriter } from "../../src/database/sqlite_writer.ts";
import { openSqlite } from "../../src/database/sqlite_file.ts";
import { refusalOfGroup, settle, type WriteResult } from "../../src/database/write_result.ts";
import { makeFolder, openDatabase } from "../helpers/database.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";
import { noteThreads, refuseThreads } from "../helpers/threads.ts";
import { until } from "../helpers/until.ts";
import { testDatabaseContract } from "./database_contract.ts";

testDatabaseContract({
  name: "the SQLite engine",
  open(t) {
    const path = join(makeFolder(t), "gatepost.db");
    return { database: openDatabase(t, path), reopen: () => openDatabase(t, path) };
  },
});

test("300 simultaneous writes take at most three commits", async (t) => {
  const { database, path } = await openFile(t);
  const before = countCommits(path);
  await Promise.all(Array.from({ length: 300 }, (_, at) => database.write([put(`k${at}`)])));
  const commits = countCommits(path) - before;
  assert.ok(commits >= 1 && commits <= 3, `${commits} commits`);
});

test("a commit has at most 512 writes, so that none waits long for the others", async (t) => {
  const sizes: number[] = [];
  const path = join(makeFolder(t), "gatepost.db");
  const database = openSqliteDatabase(path, ({ batches }) => void sizes.push(batches));
  await Promise.all(Array.from({ length: 1_200 }, (_, at) => database.write([put(`k${at}`)])));
  assert.deepEqual(sizes, [512, 512, 176]);
  await database.close();
});

test("each of several writes in sequence is committed before it resolves", async (t) => {
  const { database, path } = await openFile(t);
  for (let round = 0; round < 5; round++) {
    const before = countCommits(path);
    await database.write([put(`k${round}`)]);
    assert.equal(countCommits(path) - before, 1);
  }
});

test("while one group is committed the next one gathers", async (t) => {
  const { database, path } = await openFile(t);
  const before = countCommits(path);
  const first = Array.from({ length: 100 }, (_, at) => database.write([put(`a${at}`)]));
  await new Promise((resolve) => setImmediate(resolve));
  const second = Array.from({ length: 100 }, (_, at) => database.write([put(`b${at}`)]));
  await Promise.all([...first, ...second]);
  const commits = countCommits(path) - before;
  assert.ok(commits >= 1 && commits <= 4, `${commits} commits`);
});

test("an acknowledged write is in the files even after a crash", async (t) => {
  const { database, path } = await openFile(t);
  await database.write([put("a")]);
  // A copy of the files as they are now is what a crash would leave.
  const copy = join(makeFolder(t), "copy.db");
  for (const suffix of ["", "-wal"]) writeFileSync(copy + suffix, readFileSync(path + suffix));
  const other = openDatabase(t, copy);
  assert.equal((await other.query(sql`SELECT 1 FROM settings`)).length, 1);
});

test("while the file is locked writes fail within 2 s and queries succeed", async (t) => {
  const { database, path } = await openFile(t);
  await database.write([put("before")]);
  const locker = new DatabaseSync(path);
  t.after(() => locker.isOpen && locker.close());
  locker.exec("BEGIN IMMEDIATE");
  locker.exec("INSERT INTO settings (name, value) VALUES ('uncommitted', '1')");

  const startMs = performance.now();
  let longestQueryMs = 0;
  let isWaiting = true;
  const writes = [database.write([put("a")])];
  setTimeout(() => writes.push(database.write([put("b")])), 50);
  const querying = (async () => {
    while (isWaiting) {
      const queryMs = performance.now();
      assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 1);
      longestQueryMs = Math.max(longestQueryMs, performance.now() - queryMs);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const results = await Promise.allSettled(writes);
  const elapsedMs = performance.now() - startMs;
  isWaiting = false;
  await querying;
  assert.equal(results.length, 2);
  for (const result of results) {
    assert.ok(result.status === "rejected" && result.reason instanceof UnavailableError);
  }
  assert.ok(elapsedMs < 2_000, `${elapsedMs} ms`);
  assert.ok(longestQueryMs < 200, `${longestQueryMs} ms`);

  locker.exec("ROLLBACK");
  assert.deepEqual(await database.write([put("a")]), [1]);
  const rows = await database.query(sql`SELECT 1 FROM settings`);
  assert.equal(rows.length, 2);
});

test("while the file is locked 2,000 simultaneous writes fail within 2 s", async (t) => {
  const { database, path } = await openFile(t);
  await database.write([put("before")]);
  const locker = new DatabaseSync(path);
  t.after(() => locker.isOpen && locker.close());
  locker.exec("BEGIN IMMEDIATE");
  const startMs = performance.now();
  const writes = Array.from({ length: 2_000 }, (_, at) => database.write([put(`k${at}`)]));
  const results = await Promise.allSettled(writes);
  const elapsedMs = performance.now() - startMs;
  assert.ok(results.every((result) =>
    result.status === "rejected" && result.reason instanceof UnavailableError
  ));
  assert.ok(elapsedMs < 2_000, `${elapsedMs} ms`);
  locker.exec("ROLLBACK");
  assert.deepEqual(await database.write([put("after")]), [1]);
});

test("on a full disk writes fail and store nothing; with space they succeed again", async (t) => {
  const disk = mountSmallDisk(t, 2 ** 20);
  if (disk) await fillAndRecover(disk.folder);
});

test("forgetOverwritten() returns the reason if a full disk prevents it", async (t) => {
  const disk = mountSmallDisk(t, 2 ** 20);
  if (disk === undefined) return;
  const database = await createSqliteEngine(join(disk.folder, "gatepost.db")).open();
  t.after(() => database.close());
  await database.write([put("large", "x".repeat(200_000))]);
  const ballast = join(disk.folder, "ballast");
  assert.throws(() => writeFileSync(ballast, Buffer.alloc(2 ** 20)), { code: "ENOSPC" });
  assert.match(database.forgetOverwritten() ?? "", /full/);
  rmSync(ballast);
  assert.equal(database.forgetOverwritten(), undefined);
});

test("a full disk that keeps the write-ahead log from being emptied is logged once", async (t) => {
  const [disk, small] = [mountSmallDisk(t, 2 ** 26), mountSmallDisk(t, 2 ** 22)];
  if (disk === undefined || small === undefined) return;
  const path = join(disk.folder, "gatepost.db");
  const own = join(small.folder, "gatepost.db");
  for (const each of [path, own]) writeFileSync(each, "");
  execFileSync("mount", ["--bind", own, path]); // the file is on another disk than its log
  const lines: unknown[] = [];
  const note: Log["info"] = (...line) => void lines.push(line);
  const log = { debug: note, info: note, warn: note, error: note };
  const database = await createSqliteEngine(path).open(undefined, log);
  t.after(() => database.close());
  await database.write([put("large", "x".repeat(20_000_000))]);
  await until(async () => {
    await database.write([put(crypto.randomUUID())]);
    return lines.length > 0;
  });
  const reason = "database or disk is full";
  assert.deepEqual(lines, [["the log of the database cannot be emptied", { reason }]]);
  small.resize(2 ** 26);
  await until(async () => {
    await database.write([put(crypto.randomUUID())]);
    return statSync(`${path}-wal`).size < 2 ** 20;
  });
  assert.equal(lines.length, 1);
});

test("a first start on a small disk fails with one line that names the database", async (t) => {
  let bytes = 2 ** 18;
  const disk = mountSmallDisk(t, bytes);
  if (disk === undefined) return;
  const path = join(disk.folder, "gatepost.db");
  while (await failsToOpen(path)) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    disk.resize(bytes += 4096);
  }
});

test("a batch that exceeds the maximum size stores nothing; below it writes succeed", (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  prepareSqliteFile(path);
  const connection = openSqlite(path, { readOnly: false });
  t.after(() => connection.close());
  const write = createGroupWriter(connection, { areInPlace: () => true });
  const pages = Number(connection.prepare("PRAGMA page_count").get()?.["page_count"]);
  connection.exec(`PRAGMA max_page_count = ${pages + 20}`);

  const large = "x".repeat(400_000);
  const results = write([[put("a")], [put("b"), put("large", large)], [put("c")]]);
  assert.equal(results[1]?.kind, "unavailable");
  const stored = results.flatMap((result, at) => result.kind === "stored" ? ["abc"[at] ?? ""] : []);
  const names = connection.prepare("SELECT name FROM settings ORDER BY name").all();
  assert.deepEqual(names.map((row) => row["name"]), stored);

  connection.exec("PRAGMA max_page_count = 100000");
  assert.deepEqual(write([[put("large", large)]]), [{ kind: "stored", changes: [1] }]);
});

test("if a flush fails, the outcome of the group is unknown", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  prepareSqliteFile(path);
  const connection = openSqlite(path, { readOnly: false });
  t.after(() => connection.close());
  // What SQLite throws where fsync() of the log fails: SQLITE_IOERR_FSYNC.
  const run = t.mock.fn(() => {
    throw Object.assign(new Error("disk I/O error"), { errcode: 1034 });
  });
  const prepare = connection.prepare.bind(connection);
  t.mock.method(connection, "prepare", (text: string) =>
    text === "COMMIT" ? { run } : prepare(text));
  const write = createGroupWriter(connection, { areInPlace: () => true });

  const results = write([[put("a")], [put("b")]]);

  assert.equal(refusalOfGroup(results), "failing");
  for (const result of results) {
    const waiting = Promise.withResolvers<number[]>();
    settle(waiting, result);
    await assert.rejects(waiting.promise, OutcomeUnknownError);
  }
});

test("if the index of the log cannot grow, the outcome of the write is unknown", (t) => {
  const disk = mountSmallDisk(t, 2 ** 26);
  if (disk === undefined) return;
  const path = join(disk.folder, "gatepost.db");
  prepareSqliteFile(path);
  const connection = openSqlite(path, { readOnly: false });
  t.after(() => connection.close());
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  const write = createGroupWriter(connection, { areInPlace: () => true });
  const results: WriteResult[] = [];
  do {
    const { blocks, bavail, bsize } = statfsSync(disk.folder);
    // Where the index must grow by 32 KiB, the disk has space for only some of these pages.
    const isNear = statSync(`${path}-wal`).size > 4_040 * 4_120;
    if (isNear) disk.resize((blocks - bavail + 5) * bsize);
    results.push(...write([[put(`k${results.length}`)]]));
  } while (results.at(-1)?.kind === "stored");

  assert.equal(results.at(-1)?.kind, "unknown");
  const copy = join(makeFolder(t), "copy.db");
  for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, copy + suffix);
  using found = new DatabaseSync(copy);
  const rows = found.prepare("SELECT count(*) AS count FROM settings").get();
  assert.equal(rows?.["count"], results.length, "as after a crash");
});

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
    const path = join(makeFolder(t), "gatepost.db");
    const refusals: (Refusal | undefined)[] = [];
    const database = openSqliteDatabase(path, ({ refusal }) => void refusals.push(refusal));
    t.after(() => database.close());
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
  const path = join(makeFolder(t), "gatepost.db");
  const refusals: (Refusal | undefined)[] = [];
  const database = openSqliteDatabase(path, ({ refusal }) => void refusals.push(refusal));
  t.after(() => database.close());
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

test("a log that grew during a long read is shortened after the read", async (t) => {
  const { database, path } = await openFile(t);
  const reader = new DatabaseSync(path, { readOnly: true });
  t.after(() => reader.close());
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM settings").get();
  const large = "x".repeat(1_000_000);
  for (let round = 0; round < 7; round++) {
    const names = Array.from({ length: 10 }, (_, at) => `${round} ${at}`);
    await database.write(names.map((name) => put(name, large)));
  }
  assert.ok(statSync(`${path}-wal`).size > 64 * 2 ** 20);
  reader.exec("COMMIT");
  const logBytes = async () => {
    await database.write([sql`UPDATE settings SET value = value || 'x' WHERE name = '0 0'`]);
    return statSync(`${path}-wal`).size;
  };
  for (let waitedMs = 0; await logBytes() > 64 * 2 ** 20; waitedMs += 100) {
    assert.ok(waitedMs < 5_000, "the log is still long");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  // The shortening waited for no lock, but a write still waits for one.
  const locker = new DatabaseSync(path, { timeout: 5_000 }); // it may wait for the shortening
  t.after(() => locker.close());
  locker.exec("BEGIN IMMEDIATE");
  const write = database.write([put("after")]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  locker.exec("ROLLBACK");
  assert.deepEqual(await write, [1]);
});

test("the writer ignores a message of Node's watch mode", async (t) => {
  const workers = noteThreads(t);
  const { database } = await openFile(t);
  const write = database.write([put("a")]);
  await new Promise((resolve) => setImmediate(resolve));
  workers[0]?.emit("message", { "watch:import": ["file:///sqlite_writer.js"] });
  assert.deepEqual(await write, [1]);
});

test("if the writer's thread ends, waiting writes fail and later ones succeed", async (t) => {
  const workers = noteThreads(t);
  const path = join(makeFolder(t), "gatepost.db");
  const refusals: (Refusal | undefined)[] = [];
  const database = openSqliteDatabase(path, ({ refusal }) => void refusals.push(refusal));
  t.after(() => database.close());
  await database.write([put("before")]);

  // A lock keeps the writer from finishing its group before it ends.
  const locker = new DatabaseSync(path);
  t.after(() => locker.close());
  locker.exec("BEGIN IMMEDIATE");
  const sent = assert.rejects(database.write([put("sent")]), OutcomeUnknownError);
  await new Promise((resolve) => setImmediate(resolve)); // the writer has it
  const unsent = assert.rejects(
    database.write([put("unsent")]),
    (error) => error instanceof UnavailableError && !(error instanceof OutcomeUnknownError),
  );
  const ended = workers[0]?.terminate();
  assert.ok(ended !== undefined);
  locker.exec("ROLLBACK");
  await Promise.all([ended, sent, unsent]);
  assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 1);

  assert.deepEqual(await database.write([put("after")]), [1]);
  assert.deepEqual(refusals, [undefined, "failing", undefined]);
  assert.equal(workers.length, 2);
  assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 2);
});

test("without a thread for a new writer writes are refused until there is one", async (t) => {
  const workers = noteThreads(t);
  const path = join(makeFolder(t), "gatepost.db");
  const database = openSqliteDatabase(path);
  t.after(() => database.close());
  await database.write([put("before")]);
  await workers[0]?.terminate();
  const refused = refuseThreads(t);
  await assert.rejects(database.write([put("a")]), UnavailableError);
  const shared = openSharedDatabase(path, database.connect());
  t.after(() => shared.close());
  await assert.rejects(shared.write([put("b")]), UnavailableError);
  refused.end();
  assert.deepEqual(await database.write([put("c")]), [1]);
});

test("close() resolves even if the writer's thread ended with a write waiting", async (t) => {
  const workers = noteThreads(t);
  const { database } = await openFile(t);
  const write = database.write([put("a")]);
  void workers[0]?.terminate();
  const [result] = await Promise.allSettled([write, database.close()]);
  assert.ok(result.status === "fulfilled" || result.reason instanceof UnavailableError);
});

test("close() leaves one file that contains everything", async (t) => {
  const { database, path } = await openFile(t);
  await database.write([put("a")]);
  await database.close();
  assert.throws(() => statSync(`${path}-wal`), { code: "ENOENT" });
  assert.throws(() => statSync(`${path}-shm`), { code: "ENOENT" });
  const copy = join(makeFolder(t), "copy.db");
  writeFileSync(copy, readFileSync(path));
  assert.equal((await openDatabase(t, copy).query(sql`SELECT 1 FROM settings`)).length, 1);
});

test("ATTACH is refused in queries and in writes", async (t) => {
  const { database } = await openFile(t);
  const other = join(makeFolder(t), "other.db");
  const attach = sql`ATTACH ${sqlText(other)} AS other`;
  await assert.rejects(database.query(attach));
  await assert.rejects(database.write([attach]));
  await assert.rejects(database.write([sql`ATTACH ${other} AS other`]));
  assert.throws(() => statSync(other), { code: "ENOENT" });
  assert.deepEqual(await database.write([put("a")]), [1]);
});

interface OpenFile {
  readonly database: Database;
  readonly path: string;
}

async function openFile(t: TestContext): Promise<OpenFile> {
  const path = join(makeFolder(t), "gatepost.db");
  return { database: openDatabase(t, path), path };
}

function put(name: string, value = "1") {
  return sql`INSERT INTO settings (name, value) VALUES (${name}, ${value})`;
}

/**
 * Counts the transactions in the write-ahead log: frames whose header has the size of the database
 * after a commit (https://sqlite.org/fileformat2.html#walformat).
 */
function countCommits(path: string): number {
  const log = readFileSync(`${path}-wal`);
  if (log.length < 32) return 0;
  const pageSize = log.readUInt32BE(8);
  const salt = log.readBigUInt64BE(16);
  let commits = 0;
  for (let at = 32; at + 24 + pageSize <= log.length; at += 24 + pageSize) {
    if (log.readBigUInt64BE(at + 8) !== salt) break;
    if (log.readUInt32BE(at + 4) !== 0) commits++;
  }
  return commits;
}

async function failsToOpen(path: string): Promise<boolean> {
  try {
    await openSqliteDatabase(path).close();
    return false;
  } catch (error) {
    assert.ok(error instanceof UnusableDatabaseError, String(error));
    assert.match(error.message, /^Database .+gatepost\.db: [^\n]*disk is full[^\n]*$/);
    return true;
  }
}

async function fillAndRecover(folder: string): Promise<void> {
  const database = openSqliteDatabase(join(folder, "gatepost.db"));
  try {
    await database.write([put("before")]);
    const ballast = join(folder, "ballast");
    assert.throws(() => writeFileSync(ballast, Buffer.alloc(2 ** 20)), { code: "ENOSPC" });

    const startMs = performance.now();
    const results = await Promise.allSettled([
      database.write([put("a"), put("large", "x".repeat(600_000))]),
      database.write([put("b"), put("other", "x".repeat(600_000))]),
    ]);
    assert.ok(performance.now() - startMs < 2_000);
    for (const result of results) {
      assert.ok(result.status === "rejected" && result.reason instanceof UnavailableError);
    }
    assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 1);

    writeFileSync(ballast, "");
    assert.deepEqual(await database.write([put("a")]), [1]);
    assert.equal((await database.query(sql`SELECT 1 FROM settings`)).length, 2);
    const check = await database.query<{ integrity_check: string }>(sql`PRAGMA integrity_check`);
    assert.equal(check[0]?.integrity_check, "ok");
  } finally {
    await database.close();
  }
}

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
