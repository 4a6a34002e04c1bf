import { idBound } from "../base/id.ts";
import { messageOf } from "../base/message_of.ts";
import { newSecret } from "../base/secret.ts";
import { OutcomeUnknownError } from "./database.ts";
import type { RqliteClient } from "./rqlite_client.ts";
import { encodeStatement } from "./rqlite_statement.ts";
import { listOf, type Sql, sql } from "./sql.ts";

/**
 * Has one row for each stored group of batches, so that a group whose response was lost can be sent
 * again. If it was stored, its row exists and tells how many rows each statement changed.
 */
export const RQLITE_LEDGER = sql`CREATE TABLE IF NOT EXISTS write_groups
  (id TEXT PRIMARY KEY, counts TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID`;

/** The error of the first statement of a group that is stored already. */
export const IS_STORED = "UNIQUE constraint failed: write_groups.id";
/** How long to wait for the counts of a group that was stored. */
const COUNTS_MS = 1_000;

/** How long a group's row is kept: longer than any copy of its request can be in transit. */
const KEPT_MS = 10 * 60_000;
const TRIM_INTERVAL_MS = 60_000;
/** How many abandoned groups are remembered: requests of older ones are no longer in transit. */
const ABANDONED_LIMIT = 1_000;

/** Makes the ledger: adds a row for each group and removes old rows. */
export function createLedger(client: Pick<RqliteClient, "ask" | "aheadMs">) {
  /** Ids of groups that may not be stored. The next group takes them, so late copies fail. */
  let abandoned: readonly string[] = [];
  let trimAtMs = performance.now() + TRIM_INTERVAL_MS;

  function trim(): Sql[] {
    if (performance.now() < trimAtMs) return [];
    trimAtMs = performance.now() + TRIM_INTERVAL_MS;
    // Rows are dated by the later clock and expire by the earlier one: a wrong one loses no row.
    const keptFromMs = Date.now() + Math.min(client.aheadMs(), 0) - KEPT_MS;
    return [sql`DELETE FROM write_groups WHERE id < ${idBound("w", keptFromMs)}`];
  }

  return {
    /** Begins a group: the statements to run before its own (`head`) and after each (`count`). */
    begin() {
      const id = idBound("w", Date.now() + Math.max(client.aheadMs(), 0)) + newSecret();
      const known = abandoned;
      const head = [
        sql`INSERT INTO write_groups (id) VALUES (${id})`,
        ...known.length === 0 ? [] : [
          sql`INSERT INTO write_groups (id) SELECT value FROM ${listOf(known)} WHERE TRUE
            ON CONFLICT DO NOTHING`,
        ],
        ...trim(),
      ].map(encodeStatement);
      // Runs after each statement, since `changes()` counts for the last one only.
      const count = encodeStatement(
        sql`UPDATE write_groups SET counts = counts || changes() || ' ' WHERE id = ${id}`,
      );
      return {
        head,
        count,
        /** Must be called once the outcome is known, or known to remain unknown. */
        finish(isStored: boolean): void {
          abandoned = isStored ? abandoned.filter((each) => !known.includes(each))
            : [...abandoned, id].slice(-ABANDONED_LIMIT);
        },
        /** Reads what a stored group changed, if its response was lost. */
        async readCounts(): Promise<number[]> {
          const select = encodeStatement(sql`SELECT counts FROM write_groups WHERE id = ${id}`);
          try {
            const untilMs = performance.now() + COUNTS_MS;
            const path = "/db/query?level=strong&redirect";
            const [found] = await client.ask(() => path, [select], untilMs);
            return String(found?.values?.[0]?.[0]).trimEnd().split(" ").map(Number);
          } catch (cause) {
            throw new OutcomeUnknownError(`It is stored, but: ${messageOf(cause)}`, { cause });
          }
        },
      };
    },
  };
}
