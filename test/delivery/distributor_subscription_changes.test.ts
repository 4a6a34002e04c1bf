import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import {
  clearEndedSubscriptions,
  clearSubscription,
  deleteSubscription,
  disableSubscription,
} from "../../src/store/subscription_end.ts";
import { resendDeliveries } from "../../src/store/resends.ts";
import { updateSubscription } from "../../src/store/subscriptions.ts";
import { countChanges } from "../helpers/database.ts";
import { LEASE_MS, lookForWork, TIMEOUT_MS, untilIdle } from "../helpers/distributor_process.ts";
import { NEVER } from "../helpers/never.ts";
import { until } from "../helpers/until.ts";
import { makeDeliveries, openStage, type Stage } from "./distributor_stage.ts";

const PAUSE = { endpoint: undefined, status: "paused" } as const;
const ACTIVATE = { endpoint: undefined, status: "active" } as const;
const MOVE = { endpoint: "http://new.example/", status: undefined };

/** Ends a subscription, makes it active again, and resends some of its cancelled deliveries. */
async function sendAgain(
  { database, nowMs }: Stage,
  subscription: string,
  deliveries: readonly string[],
): Promise<void> {
  await database.write(disableSubscription(subscription, "why", nowMs));
  assert.equal(await clearSubscription(database, subscription, nowMs), true);
  await database.write([
    updateSubscription(subscription, ACTIVATE),
    ...resendDeliveries(deliveries, nowMs, "cancelled"),
  ]);
}

async function clearEnded({ database, nowMs }: Stage): Promise<void> {
  await clearEndedSubscriptions(database, () => nowMs, NEVER);
}

describe("a delivery that waits in its queue", () => {
  /** Eight attempts are in flight; the other deliveries are claimed and wait behind them. */
  async function fillQueue(t: TestContext, { deliveries = 16, isHealthy = false } = {}) {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    if (isHealthy) await stage.write(sql`UPDATE subscriptions SET hasSucceeded = 1`);
    await stage.dispatch(deliveries);
    const process = await stage.runProcess();
    assert.equal(process.open.length, 8);
    return { stage, id, process };
  }

  test("is sent only after its paused subscription is active again", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    await stage.write(updateSubscription(id, PAUSE));
    await process.endAll(204);
    assert.equal(process.begun.length, 8);
    assert.deepEqual(await stage.counts(), { delivered: 8, pending: 8 });
    await stage.write(updateSubscription(id, ACTIVATE));
    await process.run();
    assert.equal(process.begun.length, 16);
  });

  test("causes no writes while its subscription is paused", async (t) => {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    await stage.dispatch();
    await makeDeliveries(stage);
    await stage.write(updateSubscription(id, PAUSE));
    const { counted, changes } = countChanges(stage.database);
    const process = await stage.runProcess({ database: counted });
    assert.deepEqual([process.begun.length, changes], [0, []]);
  });

  test("is cancelled, not sent, after its subscription is deleted", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    await stage.write(...deleteSubscription(id, stage.nowMs));
    await process.endAll(204);
    assert.equal(process.begun.length, 8);
    await clearEnded(stage);
    assert.deepEqual(await stage.counts(), { cancelled: 8, delivered: 8 });
  });

  test("goes to the new endpoint of its subscription", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    await stage.write(updateSubscription(id, MOVE));
    await process.endAll(204);
    const endpoints = process.begun.map(({ endpoint }) => endpoint);
    assert.deepEqual(endpoints.slice(8), Array(8).fill(MOVE.endpoint));
  });

  test("is sent once if it is cancelled and then resent", async (t) => {
    const { stage, id, process } = await fillQueue(t, { deliveries: 12, isHealthy: true });
    const sent = process.ids();
    const all = await stage.rows(sql`SELECT id FROM deliveries`);
    const waiting = all.map((row) => String(row["id"])).filter((each) => !sent.includes(each));
    assert.equal(waiting.length, 4);
    await sendAgain(stage, id, waiting);
    await lookForWork(stage, process);
    await process.endAll(204);
    assert.deepEqual(process.ids().slice(8), waiting);
    await process.endAll(204);
    assert.deepEqual(await stage.counts(), { cancelled: 8, delivered: 4 });
    assert.equal(process.begun.length, 12);
  });

  test("is not sent near the end of its lease, when another may take it over", async (t) => {
    const { stage, process } = await fillQueue(t, { isHealthy: true });
    const sleptMs = LEASE_MS - TIMEOUT_MS + 10;
    stage.nowMs += sleptMs;
    stage.setBackMs -= sleptMs; // the monotonic clock stands still meanwhile
    const first = process.ids();
    await process.endAll(204);
    const later = process.ids().slice(first.length);
    assert.equal(later.length, 8, "others are claimed anew");
    assert.deepEqual(later.filter((id) => first.includes(id)), []);
    const [held] = await stage.rows(
      sql`SELECT min(dueAtMs) AS untilMs FROM deliveries WHERE status = 'pending'`,
    );
    assert.ok(Number(held?.["untilMs"]) >= stage.nowMs + TIMEOUT_MS, "the lease covers an attempt");
  });
});

describe("a delivery in flight when its subscription changes", () => {
  /**
   * Begins the attempt of this number, after others that got a 410.
   *
   * @param isHealthy whether other deliveries have succeeded meanwhile
   */
  async function begin(t: TestContext, attempt = 1, isHealthy = false) {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    await stage.dispatch();
    const process = stage.startProcess();
    const inFlight = (number: number) => {
      process.wake();
      return until(() => process.open[0]?.callback.attempt === number);
    };
    for (let number = 1; number < attempt; number++) {
      await inFlight(number);
      await process.endFirst(410);
      if (isHealthy) {
        await stage.write(sql`UPDATE subscriptions SET hasSucceeded = 1, failingSinceMs = NULL`);
      }
      stage.nowMs += 3_600_000;
    }
    await inFlight(attempt);
    const read = async () => (await stage.rows(
      sql`SELECT status, health, failingSinceMs AS since FROM subscriptions WHERE id = ${id}`,
    ))[0] ?? {};
    return { stage, id, process, end: process.endFirst, read };
  }

  const ENDS = [
    ["disabled", (id: string, nowMs: number) => disableSubscription(id, "why", nowMs)],
    ["deleted", deleteSubscription],
  ] as const;
  for (const [name, endIt] of ENDS) {
    test(`is delivered by a 204, even if the subscription is ${name} meanwhile`, async (t) => {
      const { stage, id, end } = await begin(t);
      await stage.write(...endIt(id, stage.nowMs));
      await end(204);
      assert.deepEqual(await stage.counts(), { delivered: 1 });
      assert.equal((await stage.rows(sql`SELECT 1 FROM attempts`)).length, 1);
    });

    test(`is cancelled if it fails and the subscription is ${name} meanwhile`, async (t) => {
      const { stage, id, process, end } = await begin(t);
      await stage.write(...endIt(id, stage.nowMs));
      await end(500);
      await clearEnded(stage);
      assert.deepEqual(await stage.counts(), { cancelled: 1 });
      assert.equal((await stage.rows(sql`SELECT 1 FROM attempts`)).length, 1);
      await process.runAfter(10_000);
      assert.equal(process.begun.length, 1);
    });
  }

  test("is not sent twice at the same time if it is cancelled and resent", async (t) => {
    const { stage, id, process, end } = await begin(t);
    await sendAgain(stage, id, process.ids());
    assert.deepEqual(await stage.counts(), { pending: 1 });
    await lookForWork(stage, process);
    await untilIdle(process);
    assert.equal(process.begun.length, 1);
    await end("shortage");
    stage.nowMs += 2_000;
    await lookForWork(stage, process);
    await until(() => process.begun.length === 2);
    await end(204);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
    assert.equal(process.begun.length, 2);
  });

  for (const ending of [500, 410] as const) {
    test(`and resent gets all attempts again if it fails (${ending})`, async (t) => {
      const { stage, id, process, end, read } = await begin(t, 4, true);
      await sendAgain(stage, id, process.ids().slice(0, 1));
      await lookForWork(stage, process);
      await end(ending);
      assert.equal((await read())["status"], "active");
      for (const attempt of [1, 2, 3, 4]) {
        await lookForWork(stage, process);
        await until(() => process.open[0]?.callback.attempt === attempt);
        assert.deepEqual(await stage.counts(), { pending: 1 });
        await end(500);
        stage.nowMs += 3_600_000;
      }
      assert.deepEqual(await stage.counts(), { failed: 1 });
    });
  }

  test("does not change the health of a new endpoint by its failure", async (t) => {
    const { stage, id, end, read } = await begin(t);
    await stage.write(updateSubscription(id, MOVE));
    await end(500);
    assert.deepEqual(await read(), { status: "active", health: "unknown", since: null });
  });

  test("does not disable the subscription by a last 410 of the old endpoint", async (t) => {
    const { stage, id, end, read } = await begin(t, 4);
    await stage.write(updateSubscription(id, MOVE));
    await end(410);
    assert.deepEqual(await stage.counts(), { failed: 1 });
    assert.deepEqual(await read(), { status: "active", health: "unknown", since: null });
  });

  test("disables the subscription by a last 410 of its current endpoint", async (t) => {
    const { end, read } = await begin(t, 4);
    await end(410);
    const { status, health } = await read();
    assert.deepEqual([status, health], ["disabled", "failing"]);
  });
});

test("a delivery of a subscription that is paused until a time is sent at that time", async (t) => {
  const stage = await openStage(t, { subscriptions: 1 });
  await stage.write(
    sql`UPDATE subscriptions SET status = 'paused', pausedUntilMs = ${stage.nowMs + 60_000}`,
  );
  await stage.dispatch();
  const process = await stage.runProcess({ respond: 204 });
  assert.deepEqual(await stage.counts(), { pending: 1 });
  stage.nowMs += 60_000;
  process.wake();
  await stage.untilDelivered(1);
});
