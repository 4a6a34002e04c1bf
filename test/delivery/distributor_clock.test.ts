import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OutcomeUnknownError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { LEASE_MS, setBack, untilIdle } from "../helpers/distributor_process.ts";
import { until } from "../helpers/until.ts";
import { openStage, startGated } from "./distributor_stage.ts";

describe("after the clock is set, until the stored times are shifted,", () => {
  test("nothing is claimed or sent, and everything is afterwards", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 12 });
    const process = await stage.runProcess({ perSubscription: 4 });
    stage.isClockWrong = true;
    await process.endAll(204);
    await process.run();
    assert.equal(process.begun.length, 4);
    await setBack(stage, process, 3_600_000);
    assert.equal(process.distributor.quietMs(), 0);
    for (let sent = 4; sent < 12; sent += 4) {
      process.wake();
      await until(() => process.begun.length === sent + 4);
      const lasting = sql`SELECT 1 FROM deliveries
        WHERE status = 'pending' AND dueAtMs > ${stage.nowMs + LEASE_MS + 1_000}`;
      assert.deepEqual(await stage.rows(lasting), [], "a lease by the old clock");
      await process.endAll(204);
    }
    await stage.untilDelivered(12);
  });

  test("a claim under way is awaited before the shift", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const { process, reached, open } = startGated(stage);
    await reached;
    let isShifted = false;
    const following = process.distributor.followClock(-1_000, async () => {
      isShifted = true;
    });
    await untilIdle(process);
    const wasShifted = isShifted;
    open();
    await following;
    assert.deepEqual([wasShifted, isShifted], [false, true]);
  });

  test("a claim with an unknown outcome is found by its shifted lease", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 4 });
    const database = stage.intercept("SET claim = ?", async (store, nth) => {
      const changes = await store();
      if (nth > 1) return changes;
      stage.isClockWrong = true; // so that no round finds it before the shift
      throw new OutcomeUnknownError("no answer");
    });
    const process = stage.startProcess({ database, respond: 204 }).wake();
    await until(() => stage.isClockWrong);
    await setBack(stage, process, 3_600_000);
    process.wake();
    await stage.untilDelivered(4);
  });
});
