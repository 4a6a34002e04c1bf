import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import type { CommitReport } from "../../src/database/write_result.ts";
import { openSharedDatabase } from "../../src/database/shared_database.ts";
import { makeFolder, openSqliteFile } from "../helpers/database.ts";
import { put } from "../helpers/put.ts";
import { noteThreads } from "../helpers/threads.ts";
import { testDatabaseContract } from "./database_contract.ts";

testDatabaseContract({
  name: "a database shared with another thread",
  open(t) {
    const path = join(makeFolder(t), "gatepost.db");
    return { database: share(t, path).shared, reopen: () => share(t, path).shared };
  },
});

function share(t: TestContext, path: string) {
  const own = openSqliteFile(t, path);
  const shared = openSharedDatabase(path, own.connect());
  t.after(() => shared.close());
  return { own, shared };
}

const names = async (database: Database) =>
  (await database.query<{ name: string }>(sql`SELECT name FROM settings ORDER BY name`))
    .map(({ name }) => name);

test("each of two threads reads at once what the other has stored", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  await shared.write([put("a")]);
  assert.deepEqual(await names(own), ["a"]);
  await own.write([put("b")]);
  assert.deepEqual(await names(shared), ["a", "b"]);
});

test("close() finishes earlier writes and leaves the writer's database open", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  const writes = [shared.write([put("a")]), shared.write([put("b")])];
  await shared.close();
  await Promise.all(writes);
  await own.write([put("c")]);
  assert.deepEqual(await names(own), ["a", "b", "c"]);
});

test("a write fails if the writer's thread ends, and a new connection works", async (t) => {
  const writers = noteThreads(t);
  const path = join(makeFolder(t), "gatepost.db");
  const { own, shared } = share(t, path);
  await shared.write([put("a")]);
  const ended = writers[0]?.terminate();
  await assert.rejects(shared.write([put("b")]), OutcomeUnknownError);
  await ended;
  const next = openSharedDatabase(path, own.connect());
  t.after(() => next.close());
  await next.write([put("c")]);
  assert.deepEqual(await names(own), ["a", "c"]);
});

test("simultaneous writes of both threads are one commit, which is reported once", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const reports: CommitReport[] = [];
  const own = openSqliteDatabase(path, (report) => void reports.push(report));
  t.after(() => own.close());
  const shared = openSharedDatabase(path, own.connect());
  t.after(() => shared.close());
  await shared.write([put("first")]);
  const holder = new DatabaseSync(path);
  t.after(() => holder.close());
  holder.exec("BEGIN IMMEDIATE");
  const busy = shared.write([put("second")]);
  await new Promise((resolve) => setTimeout(resolve, 50)); // the writer waits for the lock now
  const both = [
    own.write([put("own"), put("more")]),
    shared.write([put("shared")]),
    shared.write([put("a"), put("b"), put("c")]),
  ];
  await new Promise((resolve) => setTimeout(resolve, 50));
  holder.exec("COMMIT");
  assert.deepEqual(await Promise.all([busy, ...both]), [[1], [1, 1], [1], [1, 1, 1]]);
  assert.deepEqual(reports.map(({ batches }) => batches), [1, 1, 3]);
  assert.ok(reports.every(({ refusal }) => refusal === undefined));
  assert.ok((reports[1]?.ms ?? 0) > 40, "without the wait for the lock");
});

test("a writer that closes ends without an error while another thread sends", async (t) => {
  const writers = noteThreads(t);
  const errors: unknown[] = [];
  for (let round = 0; round < 8; round++) {
    const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
    await shared.write([put("a")]);
    writers.at(-1)?.on("error", (error) => errors.push(error));
    const closed = own.close();
    await new Promise((resolve) => setImmediate(resolve)); // the writer has been asked to end
    const write = shared.write([put("b")]).catch((error: unknown) => {
      assert.ok(error instanceof OutcomeUnknownError);
    });
    await Promise.all([closed, write]);
  }
  assert.deepEqual(errors, []);
});

test("a write after the writer's database closed fails with UnavailableError", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  await own.close();
  await assert.rejects(shared.write([put("a")]), UnavailableError);
});
