import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { openSharedDatabase } from "../../src/database/shared_database.ts";
import { sql } from "../../src/database/sql.ts";
import { createGroupWriter } from "../../src/database/sqlite_writer.ts";
import { refusalOfGroup, settle } from "../../src/database/write_result.ts";
import { put } from "../helpers/put.ts";
import { noteThreads, refuseThreads } from "../helpers/threads.ts";
import { openConnection, openFile } from "./sqlite_stage.ts";

test("if a flush fails, the outcome of the group is unknown", async (t) => {
  const { connection } = openConnection(t);
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

test("the writer ignores a message of Node's watch mode", async (t) => {
  const workers = noteThreads(t);
  const { database } = openFile(t);
  const write = database.write([put("a")]);
  await new Promise((resolve) => setImmediate(resolve));
  workers[0]?.emit("message", { "watch:import": ["file:///sqlite_writer.js"] });
  assert.deepEqual(await write, [1]);
});

test("if the writer's thread ends, waiting writes fail and later ones succeed", async (t) => {
  const workers = noteThreads(t);
  const { database, path, refusals } = openFile(t);
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
  const { database, path } = openFile(t);
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
  const { database } = openFile(t);
  const write = database.write([put("a")]);
  void workers[0]?.terminate();
  const [result] = await Promise.allSettled([write, database.close()]);
  assert.ok(result.status === "fulfilled" || result.reason instanceof UnavailableError);
});
