import assert from "node:assert/strict";
import { test } from "node:test";
import { createReadiness } from "../../src/app/readiness.ts";
import { addUser, openDatabase } from "../helpers/database.ts";

test("readiness says what is lacking for callbacks, while they are stuck for want of it", async (t) => {
  const database = openDatabase(t);
  await addUser(database);
  const judge = (state: "on" | "stuck", want: string | undefined) =>
    createReadiness({
      database,
      distributorState: () => state,
      want: () => want,
      backlog: () =>
        Promise.resolve({ events: 0, deliveries: 0, oldestMs: undefined, overdueSinceMs: undefined }),
      now: () => 1_000,
    })(true);
  const stuck = await judge("stuck", "EMFILE");
  assert.deepEqual([stuck.isReady, stuck.parts["lacks"]], [false, "EMFILE"]);
  const on = await judge("on", undefined);
  assert.deepEqual([on.isReady, "lacks" in on.parts], [true, false]);
});
