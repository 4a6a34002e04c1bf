import type { Database } from "../database/database.ts";
import { findValue } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { openForLook } from "../database/sqlite_file.ts";
import { IS_OPEN } from "./subscriptions.ts";

const FAILED = sql`deliveries WHERE status = 'failed'`;

/** Counts what the database at `path` holds, without any change; its schema must be the newest. */
export function countRecords(path: string) {
  using connection = openForLook(path);
  const count = (from: Sql) =>
    Number(connection.prepare(sql`SELECT count(*) AS count FROM ${from}`.sql).get()?.["count"]);
  return {
    users: count(sql`users`),
    apps: count(sql`apps`),
    subscriptions: count(sql`subscriptions WHERE status <> 'deleted'`),
    pendingEvents: count(sql`events WHERE status = 'pending'`),
    // What is left pending of a subscription that has ended is never sent.
    pendingDeliveries: count(sql`deliveries d JOIN subscriptions s ON s.seq = d.subscription
      WHERE d.status = 'pending' AND s.${IS_OPEN}`),
    failedDeliveries: count(FAILED),
  };
}

/** How many deliveries have failed for good, and wait for somebody to send them again. */
export async function countFailedDeliveries(database: Database): Promise<number> {
  return await findValue<number>(database, sql`SELECT count(*) FROM ${FAILED}`) ?? 0;
}
