import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { fanOut, listPendingEvents } from "../../src/store/fan_out.ts";
import { insertGrant } from "../../src/store/grants.ts";
import {
  clearEndedSubscriptions,
  type Ending,
  endSubscriptions,
  type SubscriptionsEnd,
} from "../../src/store/subscription_end.ts";
import { insertSubscription } from "../../src/store/subscriptions.ts";
import { addApp, addUser, openDatabase, sampleApp, sampleGrant } from "../helpers/database.ts";
import { NEVER } from "../helpers/never.ts";
import { numbers } from "../helpers/numbers.ts";

export const NOW_MS = Date.UTC(2026, 0, 1, 1);
const SEAL = createSeal(undefined);
/** What makes a subscription active. */
export const ACTIVE = { endpoint: undefined, status: "active" } as const;

interface Row {
  readonly id: string;
  readonly status: string;
  readonly reason: string | null;
}

/** A database with one app. */
export async function openStage(t: TestContext) {
  const database = openDatabase(t);
  const app = sampleApp();
  await addApp(database, app);

  /** A new user's grant of these scopes, and a subscription by a token of it. */
  async function subscribe(scopes = ["consumer"], tokenScopes = scopes) {
    const user = await addUser(database);
    const grant = sampleGrant(app.id, user, { scopes });
    assert.equal(await insertGrant(database, grant), true);
    const record = { id: newId("s", NOW_MS), principal: user, app: app.id, event: "a" };
    const [inserted] = await database.write([insertSubscription({
      ...record,
      endpoint: "https://a.example/",
      secret: "whsec_",
      createdAtMs: NOW_MS,
      grant: { id: grant.id, scopes: tokenScopes },
    }, SEAL)]);
    assert.equal(inserted, 1);
    return { ...record, grant: { id: grant.id, scopes: tokenScopes } };
  }

  /** Makes that many copies of a subscription, each with a pending delivery. */
  async function multiply(count: number): Promise<void> {
    const { id } = await subscribe();
    await database.write([
      sql`${numbers(count - 1)}
         INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, dueAtMs,
           createdAtMs, grantId, granted)
         SELECT id || i, principal, app, event, endpoint || i, 'paused', secret, 1, createdAtMs,
           grantId, granted FROM subscriptions, n WHERE id = ${id}`,
      sql`UPDATE subscriptions SET dueAtMs = 1`,
      insertEvent({ id: "e0", name: "a", json: "1", subject: undefined, createdAtMs: NOW_MS }),
      sql`UPDATE events SET status = 'distributed' WHERE id = 'e0'`,
      sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
         SELECT 'd' || seq, 'e0', seq, 'pending', 1 FROM subscriptions`,
    ]);
  }

  async function list(): Promise<Row[]> {
    const rows = await database.query<Row>(
      sql`SELECT id, status, disabledReason AS reason FROM subscriptions ORDER BY seq`,
    );
    return rows.map((row) => ({ ...row }));
  }

  /** Dispatches an event, and counts the deliveries that it gets. */
  async function dispatch(): Promise<number> {
    const id = newId("e", NOW_MS);
    await database.write([
      insertEvent({ id, name: "a", json: "1", subject: undefined, createdAtMs: NOW_MS }),
    ]);
    const events = await listPendingEvents(database, { oldest: 9999, newest: 0 });
    const event = events.find((each) => each.id === id);
    assert.ok(event);
    const part = { event, end: event.lastSubscription, claimed: [] };
    await fanOut(database, [part], "", 0, NOW_MS);
    return (await database.query(sql`SELECT 1 FROM deliveries WHERE event = ${id}`)).length;
  }

  return {
    database,
    app: app.id,
    subscribe,
    multiply,
    list,
    dispatch,
    end: (ending: Ending, how: Partial<SubscriptionsEnd> = {}) =>
      database.write(endSubscriptions(ending, { reason: "why", ...how }, NOW_MS)),
    clear: (signal = NEVER) => clearEndedSubscriptions(database, () => NOW_MS, signal),
    count: async (rows: string) =>
      (await database.query({ sql: `SELECT 1 FROM ${rows}`, params: [] })).length,
  };
}
