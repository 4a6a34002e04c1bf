import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { type Database } from "../../src/database/database.ts";
import { NEWEST } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { claimsOf, listDueQueues } from "../../src/store/deliveries.ts";
import { listPart } from "../../src/store/list.ts";
import { findDelivery, listDeliveries } from "../../src/store/delivery_lists.ts";
import { EVENT_LIST } from "../../src/store/events.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { purge } from "../../src/store/purge.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import {
  clearEndedSubscriptions,
  clearSubscription,
  deleteSubscription,
  disableAfterFailure,
  disableSubscription,
} from "../../src/store/subscription_end.ts";
import {
  findSubscription,
  insertSubscription,
  updateSubscription,
} from "../../src/store/subscriptions.ts";
import { addUser, sampleGrant } from "../helpers/database.ts";
import { NEVER } from "../helpers/never.ts";
import { numbers } from "../helpers/numbers.ts";
import { createDataFolder } from "../helpers/process.ts";
import { ACTIVE } from "./authority_stage.ts";

const NOW_MS = 1_900_000_000_000;
const DAY_MS = 86_400_000;
/** The most deliveries that ending a subscription cancels, and that clearSubscription() does. */
const [AT_ONCE, AT_MOST] = [500, 10_000];
const EVENT = newId("e", NOW_MS);
const [OWNER, GRANT] = ["u00000000", newId("g", NOW_MS)];
const DISABLED = { name: "gatepost.subscription.disabled" };

let folder = "";
let database: Database;
let id: string;
let seq: number;

before(async () => {
  folder = await createDataFolder();
  database = openSqliteDatabase(join(folder, "gatepost.db"));
  await addUser(database, { id: OWNER, scopes: ["consumer"], createdAtMs: NOW_MS });
  await database.write([
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
       VALUES (${EVENT}, 'a', '1', '[]', 'distributed', 0, ${NOW_MS})`,
  ]);
  const refreshUntilMs = NOW_MS + 99 * DAY_MS;
  const grant = { id: GRANT, scopes: ["consumer"], refreshUntilMs };
  await insertGrant(database, sampleGrant("login", OWNER, grant));
});

after(async () => {
  await database.close();
  await rm(folder, { recursive: true });
});

beforeEach(async () => {
  id = newId("s", NOW_MS);
  await database.write([
    insertSubscription({
      id,
      principal: OWNER,
      app: "login",
      event: "a",
      endpoint: `https://subscriber.example/${id}`,
      secret: "whsec_",
      createdAtMs: NOW_MS,
      grant: { id: GRANT, scopes: ["consumer"] },
    }, createSeal(undefined)),
  ]);
  seq = (await findSubscription(database, id))?.seq ?? 0;
});

/** Gives the subscription pending deliveries that are due. */
async function fill(count: number): Promise<void> {
  await database.write([
    sql`${numbers(count)}
       INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
       SELECT 'd' || substr(${EVENT}, 2) || printf('%06x%06x', ${seq}, i), ${EVENT}, ${seq},
         'pending', ${NOW_MS} FROM n`,
    sql`UPDATE subscriptions SET dueAtMs = ${NOW_MS} WHERE seq = ${seq}`,
  ]);
}

/** How many of the subscription's deliveries are shown with a status. */
async function countShown(status: "pending" | "cancelled"): Promise<number> {
  let count = 0;
  for (let cursor: string | undefined = NEWEST; cursor !== undefined;) {
    const page = await listDeliveries(database, { subscription: id, limit: 200, cursor });
    count += page.items.filter((item) => item.status === status).length;
    cursor = page.next;
  }
  return count;
}

async function countStored(status: string): Promise<number> {
  const [row] = await database.query<{ count: number }>(sql`
    SELECT count(*) AS count FROM deliveries
    WHERE subscription = ${seq} AND status = ${status}`);
  return row?.count ?? -1;
}

async function activate(): Promise<number | undefined> {
  return (await database.write([updateSubscription(id, ACTIVE)]))[0];
}

const ENDS = [
  ["disabling a subscription", () => disableSubscription(id, "why", NOW_MS)],
  ["deleting a subscription", () => deleteSubscription(id, NOW_MS)],
] as const;

for (const [name, end] of ENDS) {
  test(`${name} cancels 500 deliveries at once, and all are shown as cancelled`, async () => {
    await fill(AT_ONCE + 700);
    const changes = await database.write(end());
    assert.ok(Math.max(...changes) <= AT_ONCE, String(changes));
    assert.equal(await countStored("cancelled"), AT_ONCE);
    assert.equal(await countShown("cancelled"), AT_ONCE + 700);
    const pending = { subscription: id, status: "pending" } as const;
    for (let cursor: string | undefined = NEWEST; cursor !== undefined;) {
      const page = await listDeliveries(database, { ...pending, limit: 200, cursor });
      assert.deepEqual(page.items, []);
      cursor = page.next;
    }
    const [left] = await database.query<{ id: string }>(sql`
      SELECT id FROM deliveries WHERE subscription = ${seq} AND status = 'pending' LIMIT 1`);
    const shown = await findDelivery(database, left?.id ?? "");
    assert.deepEqual([shown?.status, shown?.nextAttemptAtMs], ["cancelled", null]);
  });

  test(`${name} leaves no delivery that can be claimed`, async () => {
    await fill(AT_ONCE + 700);
    await database.write(end());
    const except = { subscriptions: [], principals: [] };
    const due = await listDueQueues(database, "unknown", except, 99, NOW_MS);
    assert.ok(!due.some(({ subscription }) => subscription === seq));
    const request = [{ subscription: seq, count: 8 }];
    assert.deepEqual(await claimsOf(database, "c1").claim(request, NOW_MS + 9999, NOW_MS), []);
  });

  test(`the deliveries that ${name} leaves are cancelled step by step`, async () => {
    await fill(2 * AT_ONCE + 700);
    await database.write(end());
    await clearEndedSubscriptions(database, () => NOW_MS, NEVER);
    assert.equal(await countStored("pending"), 0);
    assert.equal(await countStored("cancelled"), 2 * AT_ONCE + 700);
  });
}

test("a disabled subscription becomes active only once its deliveries are cancelled", async () => {
  await fill(AT_ONCE + 1);
  await database.write(disableSubscription(id, "why", NOW_MS));
  assert.equal(await activate(), 0);
  assert.equal((await findSubscription(database, id))?.status, "disabled");
  assert.equal(await clearSubscription(database, id, NOW_MS), true);
  assert.equal(await activate(), 1);
  assert.equal((await findSubscription(database, id))?.status, "active");
  assert.equal(await countShown("cancelled"), AT_ONCE + 1);
  assert.equal(await countShown("pending"), 0);
});

test("a delivery claimed before its subscription was disabled is not sent afterwards", async () => {
  await fill(3);
  const [lease, claim] = [NOW_MS + 9999, "c1"];
  const request = [{ subscription: seq, count: 2 }];
  const claimed = await claimsOf(database, claim).claim(request, lease, NOW_MS);
  await database.write(disableSubscription(id, "why", NOW_MS));
  assert.equal(await clearSubscription(database, id, NOW_MS), true);
  assert.equal(await activate(), 1);
  const ids = claimed.map((each) => each.id);
  assert.equal(ids.length, 2);
  assert.deepEqual(await claimsOf(database, claim).listSendable(ids, NOW_MS), []);
  await database.write(claimsOf(database, claim).release(claimed, NOW_MS));
  assert.equal(await countStored("cancelled"), 3);
});

test("clearSubscription() stops after 10,000 deliveries, and goes on from there", async () => {
  await fill(AT_ONCE + AT_MOST + 1);
  await database.write(disableSubscription(id, "why", NOW_MS));
  assert.equal(await clearSubscription(database, id, NOW_MS), false);
  assert.equal(await countStored("pending"), 1);
  assert.equal(await clearSubscription(database, id, NOW_MS), true);
  assert.equal(await countStored("pending"), 0);
});

test("clearSubscription() leaves deliveries of an active subscription pending", async () => {
  await fill(3);
  assert.equal(await clearSubscription(database, id, NOW_MS), true);
  assert.equal(await countStored("pending"), 3);
});

test("disabling a subscription dispatches one event, and disabling it again none", async () => {
  const given = { ...DISABLED, limit: 200 };
  const count = async () => (await listPart(database, EVENT_LIST, given)).items.length;
  const known = await count();
  await database.write(disableSubscription(id, "why", NOW_MS));
  assert.equal(await count(), known + 1);
  await database.write(disableSubscription(id, "why not", NOW_MS));
  assert.equal(await count(), known + 1);
  const [row] = await database.query<{ reason: string }>(
    sql`SELECT disabledReason AS reason FROM subscriptions WHERE id = ${id}`,
  );
  assert.equal(row?.reason, "why");
});

const HERE = "https://subscriber.example/";
const CLAIMS = [
  ["disables its subscription while the claim holds", "c1", HERE, "disabled"],
  ["disables nothing once another process has the claim", "c2", HERE, "active"],
  ["disables nothing once the endpoint is another", "c1", "https://old.example/", "active"],
] as const;
for (const [name, holder, called, status] of CLAIMS) {
  test(`a failed delivery ${name}`, async () => {
    await fill(2);
    const request = [{ subscription: seq, count: 1 }];
    const [claimed] = await claimsOf(database, holder).claim(request, NOW_MS + seq, NOW_MS);
    const failure = { id: claimed?.id ?? "", attempt: 1 };
    const isClaimed = claimsOf(database, "c1").isClaimed(failure);
    const goneEndpoint = called === HERE ? HERE + id : called;
    const { before, after } = disableAfterFailure(seq, isClaimed, { goneEndpoint }, NOW_MS);
    await database.write([...before, ...after]);
    assert.equal((await findSubscription(database, id))?.status, status);
    // The delivery that was called is left to the record of its attempt.
    assert.equal(await countStored("pending"), status === "disabled" ? 1 : 2);
  });
}

for (const [name, end] of ENDS) {
  test(`${name} leaves an attempt in flight alone, and cancels what is released`, async () => {
    await fill(3);
    const request = [{ subscription: seq, count: 1 }];
    const claim = newId("c", NOW_MS);
    const claimed = await claimsOf(database, claim).claim(request, NOW_MS + 9_000, NOW_MS);
    await database.write(end());
    assert.equal(await countShown("pending"), 1);
    assert.equal(await countShown("cancelled"), 2);
    assert.equal((await claimsOf(database, claim).list()).length, 1);

    await database.write(claimsOf(database, claim).release(claimed, NOW_MS));
    assert.equal(await countShown("pending"), 0);
    await clearEndedSubscriptions(database, () => NOW_MS, NEVER);
    assert.equal(await countStored("cancelled"), 3);
  });
}

test("the purge removes a deleted subscription together with its deliveries", async () => {
  await fill(AT_ONCE + 200);
  await database.write(deleteSubscription(id, NOW_MS));
  const count = async () =>
    (await database.query(sql`SELECT 1 FROM subscriptions WHERE seq = ${seq}`)).length;
  const retention = { eventsMs: 30 * DAY_MS, auditMs: 90 * DAY_MS };
  await clearEndedSubscriptions(database, () => NOW_MS, NEVER);
  await purge(database, retention, NOW_MS + DAY_MS, NEVER);
  assert.equal(await count(), 1);
  assert.equal(await countStored("cancelled"), AT_ONCE + 200);
  await purge(database, retention, NOW_MS + 32 * DAY_MS, NEVER);
  assert.equal(await count(), 0);
  assert.equal(await countStored("cancelled"), 0);
});
