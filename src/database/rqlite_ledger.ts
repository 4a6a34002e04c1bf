import { idBound } from "../base/id.ts";
import { messageOf } from "../base/message_of.ts";
import { newSecret } from "../base/secret.ts";
import { OutcomeUnknownError } from "./database.ts";
import type { RqliteClient } from "./rqlite_client.ts";
import { encodeStatement } from "./rqlite_statement.ts";
import { listOf, type Sql, sql } from "./sql.ts";

/**
 * One row for each group of batches that was stored, so that one whose response was lost can be
 * sent again: the second time its row is there, with how many rows each statement changed.
 */
export const RQLITE_LEDGER = sql`CREATE TABLE IF NOT EXISTS write_groups
  (id TEXT PRIMARY KEY, counts TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID`;

/** The error of the first statement of a group that is stored already. */
export const IS_STORED = "UNIQUE constraint failed: write_groups.id";
/** How long is waited for the counts of a group that was stored. */
const COUNTS_MS = 1_000;

/** How long a group's row is kept: longer than any copy of it can be on its way. */
const KEPT_MS = 10 * 60_000;
const TRIM_INTERVAL_MS = 60_000;
/** Of so many groups copies may be on their way: those of older ones have come. */
const ABANDONED_LIMIT = 1_000;

/** Makes the entries of groups in the ledger, and keeps it short. */
export function createLedger(client: Pick<RqliteClient, "ask" | "aheadMs">) {
  /** Groups that are not known to be stored: their ids are taken, so that no late copy is. */
  let abandoned: readonly string[] = [];
  let trimAtMs = performance.now() + TRIM_INTERVAL_MS;

  function trim(): Sql[] {
    if (performance.now() < trimAtMs) return [];
    trimAtMs = performance.now() + TRIM_INTERVAL_MS;
    // By the later clock a row is young, by the earlier one old: one that is wrong loses no row.
    const keptFromMs = Date.now() + Math.min(client.aheadMs(), 0) - KEPT_MS;
    return [sql`DELETE FROM write_groups WHERE id < ${idBound("w", keptFromMs)}`];
  }

  return {
    /** A new group: what is written before its statements, and after each of them. */
    enter() {
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
      // After each statement, since that alone knows how many rows it has changed.
      const count = encodeStatement(
        sql`UPDATE write_groups SET counts = counts || changes() || ' ' WHERE id = ${id}`,
      );
      return {
        head,
        count,
        /** Has to be called once it is known whether the group is stored, or that nobody knows. */
        leave(isStored: boolean): void {
          abandoned = isStored ? abandoned.filter((each) => !known.includes(each))
            : [...abandoned, id].slice(-ABANDONED_LIMIT);
        },
        /** What it had changed when it was stored; the response to that was lost. */
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
