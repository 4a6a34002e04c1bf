import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import { UnavailableError, UnusableDatabaseError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { createSqliteEngine } from "../../src/database/sqlite_engine.ts";
import { createGroupWriter } from "../../src/database/sqlite_writer.ts";
import type { WriteResult } from "../../src/database/write_result.ts";
import { makeFolder } from "../helpers/database.ts";
import { put } from "../helpers/put.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";
import { until } from "../helpers/until.ts";
import { openConnection } from "./sqlite_stage.ts";

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
  const { connection } = openConnection(t);
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

test("if the index of the log cannot grow, the outcome of the write is unknown", (t) => {
  const disk = mountSmallDisk(t, 2 ** 26);
  if (disk === undefined) return;
  const { path, connection } = openConnection(t, disk.folder);
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
