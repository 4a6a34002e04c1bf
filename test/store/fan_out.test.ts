import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { fanOut, findFanOutPart, listPendingEvents } from "../../src/store/fan_out.ts";
import { addUser, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const LEASE_MS = NOW_MS + 60_000;

async function openStage(t: TestContext) {
  const database = openDatabase(t);
  const deliveries = () =>
    database.query<{ event: string; subscription: number }>(
      sql`SELECT event, subscription FROM deliveries ORDER BY id`,
    );
  return {
    database,
    /** Makes a subscription to "e", whose number is one more than that of the last. */
    async subscribe(principal: string, status = "active", dueAtMs: number | null = null) {
      const id = newId("s", NOW_MS);
      await database.write([
        sql`INSERT INTO subscriptions
            (id, principal, app, event, endpoint, status, secret, createdAtMs, dueAtMs)
          VALUES (${id}, ${principal}, 'login', 'e', ${`https://a.example/${id}`}, ${status}, '',
            ${NOW_MS}, ${dueAtMs})`,
      ]);
    },
    async dispatch(subject?: string) {
      const id = newId("e", NOW_MS);
      const event = { id, name: "e", json: "1", subject, createdAtMs: NOW_MS };
      await database.write([insertEvent(event)]);
      return id;
    },
    pending: () => listPendingEvents(database, { oldest: 100, newest: 0 }),
    /** The numbers of the subscriptions that have a delivery of an event. */
    receivers: async (of: string) =>
      (await deliveries()).filter(({ event }) => event === of).map((each) => each.subscription),
  };
}

for (const isForOne of [false, true]) {
  const what = isForOne ? "for one principal" : "for all";
  test(`an event ${what} reaches the subscriptions of its dispatch time, once`, async (t) => {
    const { database, subscribe, dispatch, pending, receivers } = await openStage(t);
    const [one, other] = [await addUser(database), await addUser(database)];
    for (const principal of [one, other, one, other]) await subscribe(principal);
    await subscribe(one, "disabled");
    await subscribe(one);
    const id = await dispatch(isForOne ? one : undefined);
    await subscribe(one); // afterwards
    for (let round = 0; round < 3; round++) {
      const [event] = await pending();
      if (!event) continue; // nothing is left
      const find = { limit: 2, idleLimit: 0, nowMs: NOW_MS };
      const part = await findFanOutPart(database, event, find);
      await fanOut(database, [{ ...part, claimed: [] }], "c1", LEASE_MS, NOW_MS);
    }
    assert.deepEqual(await pending(), []);
    assert.deepEqual(await receivers(id), isForOne ? [1, 3, 6] : [1, 2, 3, 4, 6]);
  });
}

test("a slower process makes only the deliveries that another has not made", async (t) => {
  const { database, subscribe, dispatch, pending, receivers } = await openStage(t);
  const principal = await addUser(database);
  for (let count = 0; count < 4; count++) await subscribe(principal);
  const [both, own] = [await dispatch(), await dispatch()];
  const parts = (await pending()).map((event) => ({ event, end: 2, claimed: [1, 2] }));
  await fanOut(database, parts.slice(0, 1), "faster", LEASE_MS, NOW_MS);
  const claimed = await fanOut(database, parts, "slower", LEASE_MS, NOW_MS);
  const ofOwn = claimed.map(({ id }) => id.startsWith(`d${own.slice(1)}`));
  assert.deepEqual(ofOwn, [true, true]);
  assert.deepEqual([await receivers(both), await receivers(own)], [[1, 2], [1, 2]]);
});

test("a slower process moves an event neither back nor past what has been made", async (t) => {
  const { database, subscribe, dispatch, pending, receivers } = await openStage(t);
  const principal = await addUser(database);
  for (let count = 0; count < 6; count++) await subscribe(principal);
  const id = await dispatch();
  const [event] = await pending();
  assert.ok(event);
  await fanOut(database, [{ event, end: 2, claimed: [] }], "faster", LEASE_MS, NOW_MS);
  await fanOut(database, [{ event, end: 6, claimed: [] }], "slower", LEASE_MS, NOW_MS);
  const [rest] = await pending();
  assert.equal(rest?.fannedOut, 2);
  await fanOut(database, [{ event: rest, end: 6, claimed: [] }], "slower", LEASE_MS, NOW_MS);
  assert.deepEqual(await receivers(id), [1, 2, 3, 4, 5, 6]);
});

test("findFanOutPart() offers only idle subscriptions that receive the event", async (t) => {
  const { database, subscribe, dispatch, pending } = await openStage(t);
  const principal = await addUser(database);
  await subscribe(await addUser(database, { scopes: [] }));
  await subscribe(principal, "paused");
  await subscribe(principal, "active", NOW_MS);
  await subscribe(principal, "active", NOW_MS + 1);
  await subscribe(principal);
  await subscribe(principal); // of the next part
  await dispatch();
  const [event] = await pending();
  assert.ok(event);
  const find = { limit: 5, idleLimit: 10, nowMs: NOW_MS };
  const { end, idle } = await findFanOutPart(database, event, find);
  assert.deepEqual([end, idle.map(({ subscription }) => subscription)], [5, [4, 5]]);
  const one = await findFanOutPart(database, event, { ...find, idleLimit: 1 });
  assert.equal(one.idle.length, 1);
});

test("a fan-out makes its receivers due, and delays no subscription that is due", async (t) => {
  const { database, subscribe, dispatch, pending } = await openStage(t);
  const principal = await addUser(database);
  await subscribe(await addUser(database, { scopes: [] }));
  for (const dueMs of [NOW_MS - 5, null, NOW_MS + 5]) await subscribe(principal, "active", dueMs);
  await subscribe(principal); // claimed
  await dispatch();
  const [event] = await pending();
  assert.ok(event);
  await fanOut(database, [{ event, end: 5, claimed: [5] }], "c1", LEASE_MS, NOW_MS);
  const due = await database.query<{ dueAtMs: number }>(
    sql`SELECT dueAtMs FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(due.map(({ dueAtMs }) => dueAtMs), [null, NOW_MS - 5, NOW_MS, NOW_MS, LEASE_MS]);
});

test("listPendingEvents() lists the newest events beside the oldest ones", async (t) => {
  const { database, dispatch } = await openStage(t);
  const ids: string[] = [];
  for (let count = 0; count < 9; count++) ids.push(await dispatch());
  const listed = (await listPendingEvents(database, { oldest: 3, newest: 2 })).map(({ id }) => id);
  assert.deepEqual(listed, [...ids.slice(0, 3), ...ids.slice(-2)]);
});

test("listPendingEvents() lists no event twice, and no distributed one", async (t) => {
  const { database, dispatch } = await openStage(t);
  const ids = [await dispatch(), await dispatch(), await dispatch(), await dispatch()];
  const newest = await dispatch();
  await database.write([sql`UPDATE events SET status = 'distributed' WHERE id = ${newest}`]);
  for (const oldest of [3, 4]) {
    const listed = await listPendingEvents(database, { oldest, newest: 2 });
    assert.deepEqual(listed.map(({ id }) => id), ids);
  }
});
