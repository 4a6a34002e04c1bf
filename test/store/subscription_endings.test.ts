import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { clearEndedSubscriptions } from "../../src/store/subscription_end.ts";
import { updateSubscription } from "../../src/store/subscriptions.ts";
import { NEVER } from "../helpers/never.ts";
import { ACTIVE, NOW_MS, openStage } from "./authority_stage.ts";

/** How many rows one statement changes at most. */
const AT_ONCE = 500;

test("many ended subscriptions get no event any more, and are disabled step by step", async (t) => {
  const stage = await openStage(t);
  const all = 2 * AT_ONCE + 300;
  await stage.multiply(all);
  const changes = await stage.end({ app: stage.app });
  assert.ok(Math.max(...changes) <= AT_ONCE, String(changes));
  assert.equal(await stage.count("subscriptions WHERE status = 'disabled'"), AT_ONCE);
  assert.equal(await stage.dispatch(), 0);

  await stage.clear();
  const ended = (await stage.list()).filter(({ status, reason }) =>
    status + reason === "disabledwhy");
  assert.equal(ended.length, all);
  assert.equal(await stage.count("deliveries WHERE status = 'cancelled'"), all);
  assert.equal(await stage.count("subscriptions WHERE dueAtMs IS NOT NULL"), 0);
  assert.equal(await stage.count("events WHERE name = 'gatepost.subscription.disabled'"), all);
  assert.equal(await stage.count("subscription_endings"), 0);
});

test("clearEndedSubscriptions() changes at most 500 rows a step, and then pauses", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(3 * AT_ONCE);
  await stage.end({ app: stage.app });
  let endedMs = -Infinity;
  let steps = 0;
  const slow: Database = {
    ...stage.database,
    async write(statements) {
      const startedMs = performance.now();
      assert.ok(startedMs - endedMs >= 59, `a step came ${startedMs - endedMs} ms after another`);
      const changes = await stage.database.write(statements);
      assert.ok(Math.max(...changes) <= AT_ONCE, String(changes));
      await new Promise((resolve) => setTimeout(resolve, 20));
      endedMs = performance.now();
      steps++;
      return changes;
    },
  };
  await clearEndedSubscriptions(slow, () => NOW_MS, NEVER);
  assert.ok(steps >= 3, `${steps} steps`);
});

test("ending many subscriptions goes on where it was stopped", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(3 * AT_ONCE);
  await stage.end({ app: stage.app });
  const stop = new AbortController();
  const stopping: Database = {
    ...stage.database,
    write: (statements) => stage.database.write(statements).finally(() => stop.abort()),
  };
  await clearEndedSubscriptions(stopping, () => NOW_MS, stop.signal);
  assert.equal(await stage.dispatch(), 0);
  await stage.clear();
  assert.equal(await stage.count("subscriptions WHERE status = 'disabled'"), 3 * AT_ONCE);
});

test("a subscription made or set active after an ending is not ended by it", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(AT_ONCE + 1);
  const early = await stage.subscribe();
  await stage.end({ app: stage.app });
  const late = await stage.subscribe();
  await stage.database.write([updateSubscription(early.id, ACTIVE, early.grant)]);
  assert.equal(await stage.dispatch(), 2);
  await stage.clear();
  assert.deepEqual((await stage.list()).slice(-2), [
    { id: early.id, status: "active", reason: null },
    { id: late.id, status: "active", reason: null },
  ]);
});

test("subscriptions of a deleted app are deleted, also those disabled before", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(2 * AT_ONCE);
  await stage.database.write([
    sql`UPDATE subscriptions SET status = 'disabled' WHERE seq > ${2 * AT_ONCE - 3}`,
  ]);
  await stage.end({ app: stage.app }, { deletes: true });
  await stage.clear();
  assert.equal(await stage.count("subscriptions WHERE status = 'deleted'"), 2 * AT_ONCE);
  // What was disabled has been announced already.
  const announced = "events WHERE name = 'gatepost.subscription.disabled'";
  assert.equal(await stage.count(announced), 2 * AT_ONCE - 3);
});

test("a lost scope ends the subscriptions of grants that have it, for any token", async (t) => {
  const stage = await openStage(t);
  const [both, narrowed, other] = [
    await stage.subscribe(["consumer", "orders"]),
    await stage.subscribe(["consumer", "orders"], ["consumer"]),
    await stage.subscribe(["consumer"]),
  ];
  await stage.end({ app: stage.app }, { scopes: ["orders", "stock"] });
  assert.deepEqual((await stage.list()).map(({ id, status }) => [id, status]), [
    [both.id, "disabled"],
    [narrowed.id, "disabled"],
    [other.id, "active"],
  ]);
});

test("endSubscriptions() ends those of an app for a user, of a grant or of a user", async (t) => {
  const stage = await openStage(t);
  const [first, second, third, spared] = [
    await stage.subscribe(),
    await stage.subscribe(),
    await stage.subscribe(),
    await stage.subscribe(),
  ];
  await stage.end({ user: first.principal, app: stage.app });
  await stage.end({ grant: second.grant.id });
  await stage.end({ user: third.principal });
  assert.deepEqual(
    (await stage.list()).filter(({ status }) => status === "active").map(({ id }) => id),
    [spared.id],
  );
});

test("an ended subscription becomes active again only by a grant", async (t) => {
  const stage = await openStage(t);
  const { id, grant } = await stage.subscribe();
  await stage.end({ grant: grant.id });
  assert.deepEqual(await stage.database.write([updateSubscription(id, ACTIVE)]), [0]);
  assert.deepEqual(await stage.database.write([updateSubscription(id, ACTIVE, grant)]), [1]);
  assert.equal(await stage.dispatch(), 1);
});
