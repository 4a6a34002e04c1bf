import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { openForLook } from "../database/sqlite_file.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** How many of each a database holds. */
export interface DatabaseCounts {
  readonly users: number;
  readonly apps: number;
  /** Deleted ones left out. */
  readonly subscriptions: number;
  readonly pendingEvents: number;
  readonly pendingDeliveries: number;
  readonly failedDeliveries: number;
}

/** Counts what the database at `path` holds, without any change; its schema must be the newest. */
export function countRecords(path: string): DatabaseCounts {
  const connection = openForLook(path);
  const count = (sql: string) =>
    Number(connection.prepare(`SELECT count(*) AS count FROM ${sql}`).get()?.["count"]);
  try {
    return {
      users: count("users"),
      apps: count("apps"),
      subscriptions: count("subscriptions WHERE status <> 'deleted'"),
      pendingEvents: count("events WHERE status = 'pending'"),
      // What is left pending of a subscription that has ended is never sent.
      pendingDeliveries: count(`deliveries d JOIN subscriptions s ON s.seq = d.subscription
        WHERE d.status = 'pending' AND s.${IS_OPEN}`),
      failedDeliveries: count("deliveries WHERE status = 'failed'"),
    };
  } finally {
    connection.close();
  }
}

/** How many deliveries have failed for good, and wait for somebody to send them again. */
export async function countFailedDeliveries(database: Database): Promise<number> {
  const rows = await database.query<{ count: number }>(sql`SELECT count(*) AS count FROM deliveries WHERE status = 'failed'`);
  return rows[0]?.count ?? 0;
}
