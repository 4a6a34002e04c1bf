import assert from "node:assert/strict";
import { test } from "node:test";
import { createBacklogReader, createReadiness } from "../../src/app/readiness.ts";
import { openDatabase } from "../helpers/database.ts";

const BACKLOG = { events: 0, deliveries: 0, oldestMs: undefined, overdueSinceMs: undefined };

test("the service is ready while every part is, and reports the state of each part", async () => {
  let callbacks = "ok";
  const judge = createReadiness({
    database: () => Promise.resolve("ok"),
    distributor: () => "off",
    callbacks: () => callbacks,
  }, () => Promise.resolve(BACKLOG), () => 1_000);
  assert.equal((await judge(false)).isReady, true);
  callbacks = "EMFILE";
  const { isReady, parts } = await judge(true);
  assert.equal(isReady, false);
  assert.equal(parts["callbacks"], "EMFILE");
  assert.deepEqual(await judge(false), { isReady: false, parts: {} });
});

test("simultaneous readers share one query of the backlog; a failure is not cached", async (t) => {
  const database = openDatabase(t);
  let queries = 0;
  let fails = true;
  const read = createBacklogReader({
    ...database,
    query(statement) {
      queries++;
      return fails ? Promise.reject(new Error("locked")) : database.query(statement);
    },
  }, () => 1_000);
  const failed = await Promise.allSettled([read(), read()]);
  assert.deepEqual(failed.map(({ status }) => status), ["rejected", "rejected"]);
  assert.equal(queries, 1);
  fails = false;
  assert.deepEqual(await read(), BACKLOG);
});
