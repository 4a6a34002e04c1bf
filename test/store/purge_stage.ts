import { idBound } from "../../src/base/id.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { numbers } from "../helpers/numbers.ts";

export const NOW_MS = Date.UTC(2026, 0, 31);
export const DAY_MS = 86_400_000;
export const RETENTION = { eventsMs: DAY_MS, auditMs: DAY_MS };

/** Adds that many deliveries of an old event, all finished at that time. */
export async function addDelivered(database: Database, count: number, finishedAtMs: number) {
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
       VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', ${NOW_MS})`,
    sql`${numbers(count)}
       INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
       SELECT ${idBound("d", NOW_MS - 9 * DAY_MS)} || printf('%06x', i), 'e1', 1, 'delivered', 0,
         ${finishedAtMs} FROM n`,
  ]);
}
