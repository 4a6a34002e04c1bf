import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { listPart } from "../../src/store/list.ts";
import type { Database } from "../../src/database/database.ts";
import {
  claimsOf,
  findNextDue,
  hasDelivery,
  HEALTHS,
  listDueQueues,
} from "../../src/store/deliveries.ts";
import { AT_MOST } from "../../src/store/batch.ts";
import {
  findDelivery,
  listAttempts,
  listDeliveries,
  listLatestAttempts,
} from "../../src/store/delivery_lists.ts";
import {
  announceFailedDelivery,
  EVENT_LIST,
  findEvent,
  findEventByKey,
  insertEvent,
} from "../../src/store/events.ts";
import { deliveryId, fanOut, findFanOutPart, listPendingEvents } from "../../src/store/fan_out.ts";
import { createFigureCounter, dropFigures, listFigures } from "../../src/store/figures.ts";
import { purge } from "../../src/store/purge.ts";
import {
  continueResend,
  continueResends,
  countResend,
  insertResend,
  insertTestDelivery,
  newResend,
  RESEND_LIST,
  resendDeliveries,
  stopResend,
} from "../../src/store/resends.ts";
import {
  clearSubscription,
  deleteSubscription,
  disableAfterFailure,
  disableSubscription,
} from "../../src/store/subscription_end.ts";
import { insertSubscription, listFailing } from "../../src/store/subscriptions.ts";
import { NEVER } from "../helpers/never.ts";
import {
  type Case,
  EVENT,
  listing,
  NOW_MS,
  of,
  openPlans,
  OWNER,
  PAGE,
  SUBSCRIPTION,
  subsets,
  writing,
} from "../helpers/query_plans.ts";

const CLAIM = "c1";
const DELIVERY = deliveryId(EVENT.id, 1);
const PENDING = {
  id: EVENT.id,
  name: EVENT.name,
  lastSubscription: 1,
  fannedOut: 0,
};
const FAILURE = { id: DELIVERY, subscription: 1, attempt: 1 };
const ATTEMPT = {
  ...FAILURE,
  endpoint: SUBSCRIPTION.endpoint,
  startedAtMs: NOW_MS,
  durationMs: 1,
  meanMs: 1,
  outcome: { kind: "response", status: 500 },
  snippet: undefined,
  next: { status: "failed", gone: false },
} as const;
const SELECTIONS = [
  { status: "failed" },
  { status: "delivered", subscription: SUBSCRIPTION.id, since: NOW_MS - 1, until: NOW_MS + 1 },
  { status: "cancelled", name: EVENT.name, endpoint: "a.example", answer: "500", attempt: 1 },
  { status: "pending", subscription: SUBSCRIPTION.id },
] as const;

const { stored, plans, record, readPlan, findScans, testPlans, testIndexes } = await openPlans();
await stored.write([insertSubscription(SUBSCRIPTION, createSeal(undefined))]);

// In an order in which each finds rows to work on.
testPlans([
  writing("storing an event", () => [insertEvent(EVENT)]),
  writing("storing an event with a key", () => [
    insertEvent({ ...EVENT, id: newId("e", NOW_MS), key: "7" }),
  ]),
  {
    name: "finding an event by its key",
    run: (database) => findEventByKey(database, EVENT.name, "7"),
  },
  {
    name: "finding events to fan out",
    sorts: true, // the oldest and the newest together
    run: (database) => listPendingEvents(database, { oldest: 224, newest: 32 }),
  },
  ...[null, OWNER].flatMap((subject) => ["[]", '["a","b"]'].flatMap((needed): Case[] => {
    const event = { ...PENDING, subject, needed };
    const what = `an event for ${subject ?? "everybody"} that needs ${needed}`;
    const by = subject === null ? {}
      : { by: "subscriptions_by_principal (principal=? AND event=?)" };
    return [
      {
        name: `finding the next fan-out part of ${what}`,
        ...by,
        run: (database) =>
          findFanOutPart(database, event, { limit: 500, idleLimit: 64, nowMs: NOW_MS }),
      },
      {
        name: `fanning out ${what}`,
        ...by,
        run: (database) =>
          fanOut(database, [{ event, end: 9, claimed: [1] }], CLAIM, NOW_MS + 1, NOW_MS),
      },
    ];
  })),
  ...HEALTHS.map((health): Case => ({
    name: `finding queues that are due: ${health}`,
    run: (database) => {
      const except = { subscriptions: [7], principals: [OWNER] };
      return listDueQueues(database, health, except, 10, NOW_MS);
    },
  })),
  {
    name: "finding the next due time",
    sorts: true, // one of each health at most
    run: (database) => findNextDue(database, NOW_MS),
  },
  {
    name: "claiming deliveries",
    sorts: true, // by id, of one claim
    run: (database) =>
      claimsOf(database, CLAIM).claim([{ subscription: 1, count: 8 }], NOW_MS + 50, NOW_MS),
  },
  {
    name: "reading claimed deliveries",
    run: (database) => claimsOf(database, CLAIM).listSendable([DELIVERY], NOW_MS + 10),
  },
  { name: "looking whether a delivery exists", run: (database) => hasDelivery(database, DELIVERY) },
  { name: "listing claimed deliveries", run: (database) => claimsOf(database, CLAIM).list() },
  writing("releasing deliveries", (database) =>
    claimsOf(database, CLAIM).release([{ id: "d0", subscription: 1 }], NOW_MS)),
  writing("announcing a failed delivery", (database) =>
    [announceFailedDelivery(claimsOf(database, CLAIM).isClaimed(FAILURE), NOW_MS)]),
  ...[{ goneEndpoint: SUBSCRIPTION.endpoint }, { failingSinceMs: NOW_MS - 1 }].map((rule) =>
    writing(`disabling after a failure: ${Object.keys(rule).join()}`, (database) => {
      const isClaimed = claimsOf(database, "").isClaimed(FAILURE);
      const { before, after } = disableAfterFailure(1, isClaimed, rule, NOW_MS);
      return [...before, ...after];
    })
  ),
  writing("recording successes", (database) =>
    claimsOf(database, "").recordDelivered([ATTEMPT], NOW_MS)),
  writing("recording a failure", (database) =>
    claimsOf(database, CLAIM).recordFailure(ATTEMPT, NOW_MS)),
  ...SELECTIONS.map((selection): Case => ({
    name: `resending in bulk by ${Object.keys(selection)}`,
    async run(database) {
      const resend = newResend(newId("w", NOW_MS), OWNER, selection);
      await countResend(database, resend);
      await database.write([insertResend(resend)]);
      await continueResend(database, resend, NOW_MS);
      await continueResends(database, NOW_MS);
      await database.write([stopResend(resend.id, NOW_MS)]);
    },
  })),
  ...([{}, { state: "done" }, { subscription: "s1", actor: OWNER }] as const).map((given) => ({
    name: `listing resends by ${Object.keys(given)}`,
    run: (database: Database) => listPart(database, RESEND_LIST, { ...given, ...PAGE }),
  })),
  writing("resending one delivery", () => resendDeliveries([DELIVERY], NOW_MS)),
  writing("sending a test delivery", () => {
    const event = newId("e", NOW_MS);
    const delivery = deliveryId(event, 1);
    const test = { subscription: SUBSCRIPTION.id, event, delivery, json: "1" };
    return insertTestDelivery(test, NOW_MS);
  }),
  ...subsets({
    status: ["pending", "failed"],
    subscription: [SUBSCRIPTION.id],
    event: [EVENT.id],
    name: [EVENT.name],
    endpoint: ["https://subscriber"],
    answer: ["500", "timeout"],
    attempt: [4],
    since: [NOW_MS - 1],
    until: [NOW_MS + 1],
  }).map((given) => listing("deliveries", given, listDeliveries)),
  ...subsets({
    name: [EVENT.name],
    status: ["pending", "distributed"],
    subject: [OWNER],
    request: ["r1"],
    source: ["POST /orders"],
    since: [NOW_MS - 1],
    until: [NOW_MS + 1],
  }).map((given) => listing("events", given, of(EVENT_LIST))),
  { name: "finding a delivery", run: (database) => findDelivery(database, DELIVERY) },
  { name: "listing attempts", run: (database) => listAttempts(database, DELIVERY) },
  { name: "finding an event", run: (database) => findEvent(database, EVENT.id) },
  ...[{}, { owner: OWNER }, { owner: OWNER, app: "a00000000" }].map((given): Case => ({
    name: `listing the failing subscriptions of ${Object.values(given).join() || "everybody"}`,
    sorts: "owner" in given, // those of one principal
    run: (database) => listFailing(database, { ...given, ...PAGE }),
  })),
  {
    name: "counting and listing figures",
    async run(database) {
      const figures = createFigureCounter(database, () => NOW_MS);
      figures.add("deliveries", true);
      await figures.flush();
      assert.equal((await listFigures(database, "deliveries", "hour", 0, NOW_MS)).length, 1);
    },
  },
  {
    name: "deleting old figures",
    sorts: true, // what is deleted, in the order of its keys
    run: (database) => database.write(dropFigures(NOW_MS, AT_MOST)),
  },
  {
    name: "listing the latest attempts of a subscription",
    sorts: true, // some hundred
    run: (database) => listLatestAttempts(database, 1),
  },
  writing("disabling a subscription", () => disableSubscription(SUBSCRIPTION.id, "x", NOW_MS)),
  {
    name: "cancelling the remaining deliveries of a subscription",
    run: (database) => clearSubscription(database, SUBSCRIPTION.id, NOW_MS),
  },
  writing("deleting a subscription", () => deleteSubscription(SUBSCRIPTION.id, NOW_MS)),
  {
    name: "the purge",
    sorts: true, // what is deleted, in the order of its keys
    run: (database) => {
      const retention = { eventsMs: 1, auditMs: 1 };
      return purge(database, retention, NOW_MS + 10_000_000, NEVER);
    },
  },
]);

testIndexes([
  ["events_by_request", listing("events", { request: "r1" }, of(EVENT_LIST))],
  ["events_by_name", listing("events", { name: EVENT.name }, of(EVENT_LIST))],
  ["events_by_status", listing("events", { status: "pending" }, of(EVENT_LIST))],
  ["deliveries_by_status", listing("deliveries", { status: "failed" }, listDeliveries)],
  ["deliveries_by_subscription",
    listing("deliveries", { subscription: SUBSCRIPTION.id }, listDeliveries)],
]);

test("the purge leaves only pending rows", () => {
  for (const table of ["events", "deliveries", "attempts", "subscriptions"]) {
    const rows = plans.prepare(`SELECT * FROM ${table}`).all();
    assert.deepEqual(rows.filter(({ status }) => status !== "pending"), [], table);
  }
});

test("every foreign key has an index, so that no deletion scans a whole table", () => {
  const tables = plans.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const references = tables.flatMap(({ name }) =>
    plans.prepare(`PRAGMA foreign_key_list(${name})`).all()
      .map(({ from }) => ({ table: String(name), column: String(from) }))
  );
  assert.ok(references.length >= 4);
  for (const { table, column } of references) {
    assert.deepEqual(findScans(`SELECT 1 FROM ${table} WHERE ${column} = ?1`), [], table);
  }
});

test("clearing a subscription finds claimed deliveries by their own index", async () => {
  const { database, statements } = record();
  await clearSubscription(database, SUBSCRIPTION.id, NOW_MS);
  const [update = ""] = [...statements].filter((sql) => sql.includes("claim IS NOT NULL"));
  const ways = readPlan(update).filter((step) => / deliveries /.test(step));
  assert.deepEqual(ways, ["SEARCH deliveries USING INDEX deliveries_claimed (claim>?)"]);
});
