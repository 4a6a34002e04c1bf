import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { assertProblem, readItems } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

let stage: EventStage;
before(async () => {
  stage = await startEventStage();
});
after(() => stage.stop());

async function readHealth(id: string, side = "backend", token = stage.admin) {
  const response = await stage.call("GET", `/${side}/subscription/${id}/health`, token);
  assert.equal(response.status, 200, response.text);
  const health: {
    failing_since: string | null;
    days: { day: string; ok: number; bad: number; failed: number }[];
    today: { ok: number; bad: number; failed: number; buckets: number[] };
    answers: { answer: string; count: number }[];
    latest: { attempt: number; status?: number } | null;
  } = JSON.parse(response.text);
  return health;
}

test("a subscription's health counts attempts, and ?sort=worst lists a failing one", async () => {
  const consumer = await stage.newConsumer();
  const subscription = await stage.subscribe(consumer, "series.health", 204, 500, 503, 204);
  for (const ends of [["delivered"], ["failed", "delivered"]]) {
    await stage.dispatch("series.health", {});
    await stage.deliveries(subscription, ...ends);
  }
  await until(async () => (await readHealth(subscription.id)).today.bad === 2);
  const failing = await readHealth(subscription.id);
  assert.equal(failing.days.length, 30);
  assert.deepEqual(failing.days.slice(0, -1).filter(({ ok, bad }) => ok + bad > 0), []);
  const { day, ...counts } = failing.days.at(-1) ?? {};
  assert.equal(day, new Date().toISOString().slice(0, 10));
  assert.deepEqual(counts, { ok: 1, bad: 2, failed: 1 });
  assert.equal(failing.today.buckets.reduce((sum, count) => sum + count, 0), 3);
  assert.deepEqual(
    failing.answers.toSorted((one, two) => one.answer.localeCompare(two.answer)),
    ["204", "500", "503"].map((answer) => ({ answer, count: 1 })),
  );
  assert.deepEqual([failing.latest?.attempt, failing.latest?.status], [2, 503]);
  assert.notEqual(failing.failing_since, null);
  assert.deepEqual(await readHealth(subscription.id, "consumer", consumer), failing);

  const list = "/backend/subscription?sort=worst";
  const worst = readItems(await stage.call("GET", list, stage.admin));
  assert.deepEqual(worst.map(({ id }) => id), [subscription.id]);
  assert.equal(worst[0]?.["failing_since"], failing.failing_since);
  for (const filter of ["event=other", "status=paused", "owner=u00000000", "q=https://other"]) {
    const others = await stage.call("GET", `${list}&${filter}`, stage.admin);
    assert.deepEqual(readItems(others), [], filter);
  }
  const narrowed = await stage.call("GET", `${list}&event=${subscription.event}`, stage.admin);
  assert.deepEqual(readItems(narrowed).map(({ id }) => id), [subscription.id]);
  const own = readItems(await stage.call("GET", "/consumer/subscription?sort=worst", consumer));
  assert.deepEqual(own.map(({ id }) => id), [subscription.id]);
  const foreign = await stage.newConsumer();
  const none = await stage.call("GET", "/consumer/subscription?sort=worst", foreign);
  assert.deepEqual(readItems(none), []);
  const theirs = `/consumer/subscription/${subscription.id}/health`;
  assertProblem(await stage.call("GET", theirs, foreign), 404);

  await stage.dispatch("series.health", {});
  await stage.deliveries(subscription, "delivered", "failed", "delivered");
  assert.equal((await readHealth(subscription.id)).failing_since, null);
  assert.deepEqual(readItems(await stage.call("GET", list, stage.admin)), []);
});

test("the health of an unknown subscription is 404", async () => {
  const path = "/backend/subscription/s0/health";
  assertProblem(await stage.call("GET", path, stage.admin), 404);
});
