import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { takeOver } from "../../src/delivery/take_over.ts";
import { claimsOf } from "../../src/store/deliveries.ts";
import { LEASE_MS, lookForWork, untilIdle } from "../helpers/distributor_process.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { until } from "../helpers/until.ts";
import { makeDeliveries, openStage } from "./distributor_stage.ts";

describe("several processes", () => {
  test("send nothing twice", async (t) => {
    const stage = await openStage(t, { subscriptions: 5 });
    const names = ["c1", "c2", "c3"];
    const processes = names.map((name) => stage.startProcess({ name, respond: 204 }));
    for (let round = 0; round < 10; round++) {
      await stage.dispatch(10);
      for (const process of processes) process.wake();
    }
    await until(async () => {
      for (const process of processes) process.wake();
      return (await stage.counts())["delivered"] === 500;
    });
    const ids = processes.flatMap((process) => process.ids());
    assert.equal(ids.length, 500);
    assert.equal(new Set(ids).size, 500);
  });

  test("do not take over the claims of a living process before its lease ends", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 16 });
    await stage.runProcess({ name: "c1" });
    const other = stage.startProcess({ name: "c2", respond: 204 });
    await other.runAfter(LEASE_MS - 1);
    assert.equal(other.begun.length, 0);
    stage.nowMs += 10; // each claim has its own lease
    other.wake();
    await stage.untilDelivered(16);
  });

  test("take over the claims of a dead process at once", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 16 });
    await stage.runProcess({ name: "c1" });
    const other = stage.startProcess({ name: "c2", respond: 204 });
    await stage.write(...["c1", "c2"].map((claim) => sql`INSERT INTO cronjobs
      (name, nextAtMs, claim, leaseUntilMs) VALUES (${claim}, 1, ${claim}, 9)`));
    await takeOver({ database: stage.database, log: SILENT, now: () => stage.nowMs }, "c1");
    const jobs = sql`SELECT name FROM cronjobs WHERE claim IS NOT NULL`;
    assert.deepEqual(await stage.rows(jobs), [{ name: "c2" }]);
    other.wake();
    await stage.untilDelivered(16);
    assert.deepEqual(
      other.begun.map(({ id, attempt }) => `${id} ${attempt}`).sort(),
      [...new Set(other.begun.map(({ id }) => `${id} 1`))].sort(),
    );
  });

  test("ignore the outcome of a delivery that was taken over meanwhile", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const slow = await stage.runProcess({ name: "c1" }); // idle, or it would take them over itself
    assert.equal(slow.open.length, 1);
    stage.nowMs += LEASE_MS;
    const other = stage.startProcess({ name: "c2", respond: 204 }).wake();
    await stage.untilDelivered(1);
    slow.open[0]?.end(500);
    await untilIdle(slow, other);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
    assert.deepEqual(await stage.rows(sql`SELECT status FROM attempts`), [{ status: 204 }]);
    const known = sql`SELECT hasSucceeded, failingSinceMs FROM subscriptions`;
    assert.deepEqual(await stage.rows(known), [{ hasSucceeded: 1, failingSinceMs: null }]);
  });

  test("wake by themselves when a delivery that another claimed first is due again", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    await makeDeliveries(stage);
    const database = stage.intercept("SET claim = ?", async (store, nth) => {
      const requests = [{ subscription: 1, count: 1 }];
      const other = claimsOf(stage.database, "c1");
      if (nth === 1) await other.claim(requests, stage.nowMs + 200, stage.nowMs);
      return store();
    });
    const slower = stage.startProcess({ name: "c2", database, respond: 204 }).wake();
    await until(() => database.seen() > 0);
    await untilIdle(slower);
    stage.nowMs += 300;
    await stage.untilDelivered(1);
  });
});

describe("a delivery made while nothing is due", () => {
  test("is claimed in the commit that makes it", async (t) => {
    const stage = await openStage(t, { subscriptions: 2 });
    const claims = stage.intercept("SET claim = ?", (store) => store());
    const process = stage.startProcess({ database: claims, respond: 204 });
    await lookForWork(stage, process);
    await stage.dispatch(2);
    process.wake();
    await stage.untilDelivered(4);
    assert.equal(process.begun.length, 4);
    assert.equal(claims.seen(), 0);
  });

  test("is sent in the order of dispatch, even if not all can be claimed", async (t) => {
    const stage = await openStage(t, { subscriptions: 1 });
    const process = stage.startProcess({ total: 1, perSubscription: 1, respond: 204 });
    await lookForWork(stage, process);
    for (let count = 1; count <= 24; count += 8) {
      await stage.dispatch(8);
      process.wake();
    }
    await stage.untilDelivered(24);
    assert.deepEqual(process.ids(), process.ids().sort());
  });

  test("is sent once if two processes make it at the same time", async (t) => {
    const stage = await openStage(t, { subscriptions: 1 });
    const processes = ["c1", "c2"].map((name) => stage.startProcess({ name, respond: 204 }));
    for (const process of processes) await lookForWork(stage, process);
    await stage.dispatch(30);
    for (const process of processes) process.wake();
    await stage.untilDelivered(30);
    await untilIdle(...processes);
    const sent = processes.flatMap((process) => process.ids());
    assert.equal(sent.length, 30);
    assert.equal(new Set(sent).size, 30);
  });

  test("is sent by another process when the lease of its maker has ended", async (t) => {
    const stage = await openStage(t, { subscriptions: 1 });
    const dead = stage.startProcess({ name: "c1" });
    await lookForWork(stage, dead);
    await stage.dispatch();
    dead.wake();
    await until(() => dead.begun.length === 1);
    const other = await stage.runProcess({ name: "c2", respond: 204 });
    assert.equal(other.begun.length, 0);
    stage.nowMs += LEASE_MS;
    other.wake();
    await stage.untilDelivered(1);
  });
});
