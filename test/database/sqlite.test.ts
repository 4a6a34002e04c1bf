import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { sql, sqlText } from "../../src/database/sql.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { makeFolder, openDatabase } from "../helpers/database.ts";
import { put } from "../helpers/put.ts";
import { testDatabaseContract } from "./database_contract.ts";
import { openFile } from "./sqlite_stage.ts";

testDatabaseContract({
  name: "the SQLite engine",
  open(t) {
    const path = join(makeFolder(t), "gatepost.db");
    return { database: openDatabase(t, path), reopen: () => openDatabase(t, path) };
  },
});

test("300 simultaneous writes take at most three commits", async (t) => {
  const { database, path } = openFile(t);
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
  const { database, path } = openFile(t);
  for (let round = 0; round < 5; round++) {
    const before = countCommits(path);
    await database.write([put(`k${round}`)]);
    assert.equal(countCommits(path) - before, 1);
  }
});

test("while one group is committed the next one gathers", async (t) => {
  const { database, path } = openFile(t);
  const before = countCommits(path);
  const first = Array.from({ length: 100 }, (_, at) => database.write([put(`a${at}`)]));
  await new Promise((resolve) => setImmediate(resolve));
  const second = Array.from({ length: 100 }, (_, at) => database.write([put(`b${at}`)]));
  await Promise.all([...first, ...second]);
  const commits = countCommits(path) - before;
  assert.ok(commits >= 1 && commits <= 4, `${commits} commits`);
});

test("an acknowledged write is in the files even after a crash", async (t) => {
  const { database, path } = openFile(t);
  await database.write([put("a")]);
  // A copy of the files as they are now is what a crash would leave.
  const copy = join(makeFolder(t), "copy.db");
  for (const suffix of ["", "-wal"]) writeFileSync(copy + suffix, readFileSync(path + suffix));
  const other = openDatabase(t, copy);
  assert.equal((await other.query(sql`SELECT 1 FROM settings`)).length, 1);
});

test("while the file is locked writes fail within 2 s and queries succeed", async (t) => {
  const { database, path } = openFile(t);
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
  const { database, path } = openFile(t);
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

test("a log that grew during a long read is shortened after the read", async (t) => {
  const { database, path } = openFile(t);
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

test("close() leaves one file that contains everything", async (t) => {
  const { database, path } = openFile(t);
  await database.write([put("a")]);
  await database.close();
  assert.throws(() => statSync(`${path}-wal`), { code: "ENOENT" });
  assert.throws(() => statSync(`${path}-shm`), { code: "ENOENT" });
  const copy = join(makeFolder(t), "copy.db");
  writeFileSync(copy, readFileSync(path));
  assert.equal((await openDatabase(t, copy).query(sql`SELECT 1 FROM settings`)).length, 1);
});

test("ATTACH is refused in queries and in writes", async (t) => {
  const { database } = openFile(t);
  const other = join(makeFolder(t), "other.db");
  const attach = sql`ATTACH ${sqlText(other)} AS other`;
  await assert.rejects(database.query(attach));
  await assert.rejects(database.write([attach]));
  await assert.rejects(database.write([sql`ATTACH ${other} AS other`]));
  assert.throws(() => statSync(other), { code: "ENOENT" });
  assert.deepEqual(await database.write([put("a")]), [1]);
});

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
