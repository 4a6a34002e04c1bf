import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** Counts the records of a database, by their names in JSON; its schema must be the newest. */
export async function countRecords({ query }: Pick<Database, "query">) {
  const [counts] = await query<Record<string, number>>(sql`SELECT
    (SELECT count(*) FROM users) AS users,
    (SELECT count(*) FROM apps) AS apps,
    (SELECT count(*) FROM subscriptions WHERE status <> 'deleted') AS subscriptions,
    (SELECT count(*) FROM events WHERE status = 'pending') AS pending_events,
    -- What is left pending of a subscription that has ended is never sent.
    (SELECT count(*) FROM deliveries d JOIN subscriptions s ON s.seq = d.subscription
      WHERE d.status = 'pending' AND s.${IS_OPEN}) AS pending_deliveries,
    (SELECT count(*) FROM deliveries WHERE status = 'failed') AS failed_deliveries`);
  return counts ?? {};
}
