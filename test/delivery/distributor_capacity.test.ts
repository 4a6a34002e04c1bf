import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { updateSubscription } from "../../src/store/subscriptions.ts";
import { DELAYS_MS, type Ending, setBack, untilIdle } from "../helpers/distributor_process.ts";
import { until } from "../helpers/until.ts";
import { openStage } from "./distributor_stage.ts";

describe("the caps", () => {
  test("allow 8 attempts of one subscription and 64 in all", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 40 });
    const process = await stage.runProcess();
    assert.equal(process.open.length, 8);
    await stage.subscribeMany(11);
    await stage.dispatch(40);
    await process.run();
    assert.equal(process.open.length, 56, "8 slots are left for healthy subscriptions");
    await process.endAll(204);
    assert.equal(process.open.length, 64);
    const perEndpoint = Map.groupBy(process.open, ({ callback }) => callback.endpoint);
    assert.ok(perEndpoint.values().every((attempts) => attempts.length <= 8));
    await process.endFirst(204);
    assert.equal(process.open.length, 64);
    assert.equal(process.peak(), 64);
  });

  test("leave a failing subscription one slot, until it succeeds", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 60 });
    const process = await stage.runProcess();
    await process.endAll(500);
    for (let round = 0; round < 5; round++) {
      assert.equal(process.open.length, 1, `after ${round} failures in a row`);
      await process.endFirst(500);
    }
    await process.endFirst(204);
    assert.equal(process.open.length, 8);
  });

  test("grow again after a success, even if what is due was read before it", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 20 });
    let hold = Promise.resolve();
    let isHeld = false;
    const database: Database = {
      ...stage.database,
      async query(select) {
        const rows = await stage.database.query(select);
        isHeld ||= rows.length > 0 && select.sql.includes("dueAtMs IS NOT NULL AND dueAtMs <=");
        if (isHeld) await hold;
        return rows as never;
      },
    };
    const process = await stage.runProcess({ database });
    await process.endAll(500);
    const { promise, resolve } = Promise.withResolvers<void>();
    [hold, isHeld] = [promise, false];
    process.open[0]?.end(204);
    await until(() => isHeld);
    await stage.untilDelivered(1);
    await process.stored();
    resolve();
    await untilIdle(process);
    assert.equal(process.open.length, 8);
  });

  test("leave a healthy subscription its slots beside a hundred that never respond", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch();
    const process = await stage.runProcess();
    await process.endFirst(204);
    await stage.subscribeMany(100, "hung");
    await stage.dispatch(40);
    await process.run();
    const ofHealthy = () =>
      process.open.filter(({ callback }) => callback.endpoint === "http://healthy.example/");
    for (let round = 0; round < 4; round++) {
      assert.equal(process.open.length, 64);
      assert.equal(ofHealthy().length, 8, `in round ${round}`);
      for (const attempt of ofHealthy()) attempt.end(204);
      await untilIdle(process);
    }
  });

  test("leave failing subscriptions half of the slots, and delay no healthy one", async (t) => {
    const stage = await openStage(t, { subscriptions: 100, events: 2 });
    const first = stage.startProcess({ respond: "timeout" }).wake();
    // Each first attempt fails; from then on they hang.
    await until(() => first.begun.length === 200);
    await untilIdle(first);
    await first.distributor.stop(0);
    const second = stage.startProcess();
    await second.runAfter(3_600_000);
    assert.equal(second.open.length, 32);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch(10);
    await second.run();
    const healthy = second.open.filter(({ callback }) => callback.endpoint.includes("healthy"));
    assert.equal(healthy.length, 8, "while 100 dead ones wait");
    assert.equal(second.open.length, 40);
  });

  test("keep healthy subscriptions from starving resends", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const failing = await stage.runProcess({ respond: 500 });
    await failing.distributor.stop(0);
    await stage.subscribeMany(40);
    await stage.dispatch(20);
    stage.nowMs += 10_000;
    const process = stage.startProcess({ total: 4, perSubscription: 2, respond: 204 }).wake();
    await until(() => process.begun.some(({ attempt }) => attempt === 2));
    assert.ok(process.begun.length < 100, `it came after ${process.begun.length} others`);
  });
});

describe("a delivery that a shortage of the service holds back", () => {
  test("has had no attempt, and is sent as attempt 1 after the shortage", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 20 });
    let isLacking = true;
    const process = await stage.runProcess({ respond: () => isLacking ? "shortage" : 204 });
    assert.ok(process.begun.length <= 8, "nothing more is sent for a moment");
    assert.equal(process.distributor.shortage(), "EMFILE");
    await process.runAfter(999);
    assert.ok(process.begun.length <= 8);
    isLacking = false;
    stage.nowMs += 1;
    process.wake();
    await stage.untilDelivered(20);
    assert.deepEqual(new Set(process.begun.map(({ attempt }) => attempt)), new Set([1]));
    const rows = await stage.rows(
      sql`SELECT health, (SELECT count(*) FROM attempts) AS attempts FROM subscriptions`,
    );
    assert.deepEqual(rows, [{ health: "healthy", attempts: 20 }]);
    stage.nowMs += 5_000;
    assert.equal(process.distributor.shortage(), undefined);
  });

  test("does not wait longer if the clock is set back", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const endings: Ending[] = ["shortage"];
    const process = await stage.runProcess({ respond: () => endings.shift() ?? 204 });
    assert.equal(process.begun.length, 1);
    await setBack(stage, process, 3_600_000);
    stage.nowMs += 1_000;
    process.wake();
    await stage.untilDelivered(1);
  });

  test("keeps its attempt number, also after a failure", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const endings: Ending[] = [500, "shortage", "shortage", 500];
    const process = stage.startProcess({ respond: () => endings.shift() ?? 204 });
    for (const waitMs of [0, DELAYS_MS[0], 1_000, 1_000, DELAYS_MS[1]]) {
      await process.runAfter(waitMs);
    }
    assert.deepEqual(process.begun.map(({ attempt }) => attempt), [1, 2, 2, 2, 3]);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
  });
});

describe("slow subscribers", () => {
  test("are known as slow to the next process", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://first.slow.example/");
    await stage.dispatch();
    const first = await stage.runProcess();
    stage.nowMs += 9_000;
    first.open[0]?.end(200);
    await stage.untilDelivered(1);
    await first.distributor.stop(0);
    await stage.subscribeMany(7, "slow.example");
    await stage.write(sql`UPDATE subscriptions SET hasSucceeded = 1,
      meanMs = (SELECT max(meanMs) FROM subscriptions),
      principal = (SELECT principal FROM subscriptions ORDER BY seq LIMIT 1)`);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch(40);
    const second = await stage.runProcess();
    const slow = second.open.filter(({ callback }) => callback.endpoint.includes("slow"));
    assert.equal(slow.length, 16, "a quarter of the slots: they have one principal");
    assert.equal(second.open.length - slow.length, 8);
  });

  test("leave half of the slots to the others", async (t) => {
    const stage = await openStage(t, { subscriptions: 20 });
    await stage.write(sql`UPDATE subscriptions SET meanMs = 1001, hasSucceeded = 1`);
    await stage.subscribe();
    await stage.write(
      sql`UPDATE subscriptions SET meanMs = 1000, hasSucceeded = 1 WHERE meanMs = 0`,
    );
    await stage.dispatch(40);
    const process = await stage.runProcess();
    assert.equal(process.open.length, 40);
  });

  test("have unknown health after a change of their endpoint", async (t) => {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    await stage.write(
      sql`UPDATE subscriptions SET meanMs = 9000, hasSucceeded = 1`,
      updateSubscription(id, { endpoint: "http://new.example/", status: undefined }),
    );
    const rows = await stage.rows(sql`SELECT health, meanMs FROM subscriptions`);
    assert.deepEqual(rows, [{ health: "unknown", meanMs: 0 }]);
  });
});
