import { type Database, valueIf } from "../database/database.ts";
import { changesRow, findRow } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

const KEPT_MS = 86_400_000;
/** How long an attempt holds its key unless it extends the lease: its process may be dead. */
export const LEASE_MS = 20_000;

/** An attempt, of a unique name, to carry out a request; `id` and `asked` as in the schema. */
export function createAttempt(database: Database, id: Uint8Array, asked: Uint8Array, name: string) {
  const isOpen = sql`attempt = ${name} AND response = ''`;
  return {
    /** Begins. False if a response is kept, another attempt runs, or the request differs. */
    begin: (nowMs: number): Promise<boolean> =>
      changesRow(database, sql`INSERT INTO idempotency_keys AS k
          (id, asked, attempt, leaseUntilMs, untilMs)
        VALUES (${id}, ${asked}, ${name}, ${nowMs + LEASE_MS}, ${nowMs + KEPT_MS})
        ON CONFLICT (id) DO UPDATE SET asked = excluded.asked, attempt = excluded.attempt,
          leaseUntilMs = excluded.leaseUntilMs, untilMs = excluded.untilMs, response = ''
        WHERE k.untilMs <= ${nowMs}
          OR (k.response = '' AND k.leaseUntilMs <= ${nowMs} AND k.asked = excluded.asked)`),
    /** Moves the end of the lease; false if the attempt has ended or been replaced. */
    extend: (untilMs: number): Promise<boolean> =>
      changesRow(database, sql`UPDATE idempotency_keys SET leaseUntilMs = ${untilMs}
        WHERE id = ${id} AND ${isOpen}`),
    /**
     * Keeps the response, in the batch of all that the attempt stores. That batch fails with
     * ConflictError once another attempt has begun, however late it is stored.
     */
    keep: (response: string): Sql =>
      sql`UPDATE idempotency_keys SET response = ${valueIf(isOpen, response)} WHERE id = ${id}`,
    /** Finds what is stored for the key. */
    find: () =>
      findRow<{ readonly isSame: number; readonly response: string }>(database, sql`SELECT response,
        asked = ${asked} AS isSame FROM idempotency_keys WHERE id = ${id}`),
  };
}
