import { type Sql, sql, type SqlValue } from "./sql.ts";

/**
 * Everything that Gatepost needs from a storage engine. There are no interactive transactions: SQL
 * checks conditions at commit, so an engine may group concurrent writes into one commit.
 */
export interface Database {
  /**
   * Returns the rows of one SELECT, which sees every completed `write`; `Row` names its columns.
   * Select a BLOB column itself: an engine may return the bytes of an expression as text.
   */
  query<Row>(statement: Sql): Promise<Row[]>;
  /**
   * Runs the statements as one atomic batch. Resolves once it is durable, with the number of rows
   * that each statement changed. Nothing is stored when it throws ConflictError (broken constraint)
   * or UnavailableError (full disk, locked file). After OutcomeUnknownError the batch may be
   * stored.
   */
  write(statements: readonly Sql[]): Promise<number[]>;
  /** Finishes pending writes, then closes the database. */
  close(): Promise<void>;
}

/** A write broke a UNIQUE or other constraint; nothing of its batch is stored. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Why the database refuses writes, as `/system/ready` reports it. */
export type Refusal = "locked" | "read_only" | "full" | "replaced" | "damaged" | "failing";

/**
 * The engine cannot read or write now (locked, full, gone). Nothing of a write is stored, unless
 * its outcome is unknown. The error has no stack: many come at once, and the message says enough.
 */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    delete this.stack;
  }
}

/** Nobody knows yet whether the batch is stored. It may be stored later, but never in part. */
export class OutcomeUnknownError extends UnavailableError {
  override readonly name = "OutcomeUnknownError";
}

/** Gatepost cannot use this database; the message says why in one line. */
export class UnusableDatabaseError extends Error {
  override readonly name = "UnusableDatabaseError";
}

/** `LIMIT` for hot statements: SQLite would plan a bare `LIMIT ?` anew each time that it runs. */
export function limitTo(count: number): Sql {
  return sql`LIMIT ${count} + 0`;
}

/** The value if the condition holds, else NULL: a ConflictError in a NOT NULL column. */
export function valueIf(condition: Sql, value: Sql | SqlValue): Sql {
  return sql`CASE WHEN ${condition} THEN ${value} END`;
}

/** Which page of a list is wanted: the items after the one of `cursor`, else the newest. */
export interface Pagination {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** A page of a list, newest first, and the cursor of the next page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}
