import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import { insertResend, newResend } from "../../src/store/resends.ts";
import { DELAYS_MS } from "../helpers/distributor_process.ts";
import { until } from "../helpers/until.ts";
import { openStage } from "./distributor_stage.ts";

describe("resends", () => {
  test("come after each delay with the same id, and then stop", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const process = await stage.runProcess({ respond: 500 });
    for (const [index, delayMs] of DELAYS_MS.entries()) {
      await process.runAfter(delayMs - 1);
      assert.equal(process.begun.length, index + 1, "a millisecond before its time");
      await process.runAfter(1);
    }
    assert.deepEqual(process.begun.map(({ attempt }) => attempt), [1, 2, 3, 4]);
    assert.equal(new Set(process.ids()).size, 1);
    await process.runAfter(100 * 3_600_000);
    assert.equal(process.begun.length, 4);
    assert.deepEqual(process.observed, [false, false, false, true]);
    assert.deepEqual(await stage.counts(), { failed: 1 });
    const active = sql`SELECT 1 FROM subscriptions WHERE status = 'active'`;
    assert.equal((await stage.rows(active)).length, 1, "disableAfterMs 0 never disables");
  });

  test("stop after a success", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const process = await stage.runProcess({
      respond: ({ attempt }) => attempt === 2 ? 200 : 500,
    });
    stage.nowMs += DELAYS_MS[0];
    process.wake();
    await stage.untilDelivered(1);
    assert.equal(process.begun.length, 2);
  });
});

test("a resend of 1,200 deliveries is completed after one wake", async (t) => {
  const stage = await openStage(t, { subscriptions: 1 });
  const ids = Array.from({ length: 1_200 }, () => `d${newId("e", stage.nowMs).slice(1)}1`);
  await stage.write(
    sql`UPDATE subscriptions SET status = 'paused'`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
      SELECT value, 'e1', 1, 'failed', 1, 1 FROM json_each(${JSON.stringify(ids)})`,
    insertResend(newResend(newId("w", stage.nowMs), "u1", { status: "failed" })),
  );
  stage.startProcess().wake();
  await until(async () => (await stage.counts())["pending"] === ids.length);
});
