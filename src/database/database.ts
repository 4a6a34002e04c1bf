import { type Sql, sql, type SqlValue } from "./sql.ts";

/**
 * All that Gatepost needs of a storage engine. There is no interactive transaction: what must be
 * decided at commit is decided in SQL, so an engine may group concurrent writes into one commit.
 */
export interface Database {
  /**
   * The rows of one SELECT, with what every completed `write` stored; `Row` names its columns.
   * Bytes come from a column that holds them: of an expression an engine may make text.
   */
  query<Row>(statement: Sql): Promise<Row[]>;
  /**
   * Runs the statements as one atomic batch and resolves once it is durable, with the number of
   * rows that each changed. Nothing is stored when it throws: ConflictError for a broken
   * constraint, UnavailableError for a full disk or a locked file. Only of OutcomeUnknownError, a
   * kind of the latter, it is not known.
   */
  write(statements: readonly Sql[]): Promise<number[]>;
  /** Finishes what was given to `write`, then closes the file. */
  close(): Promise<void>;
}

/** A write broke a UNIQUE or other constraint; nothing of its batch is stored. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Why writes are refused: what `/system/ready` says of the database. */
export type Refusal = "locked" | "read_only" | "full" | "replaced" | "damaged" | "failing";

/**
 * The engine cannot read or write just now (locked, full, gone); nothing of it is stored, unless
 * its outcome is unknown. It has no stack: many come at once, and the message says what there is.
 */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    delete this.stack;
  }
}

/** Whether a write was stored could not be learned in time: it is or will be, whole, or never. */
export class OutcomeUnknownError extends UnavailableError {
  override readonly name = "OutcomeUnknownError";
}

/** The file cannot serve as Gatepost's database; the message says why in one line. */
export class UnusableDatabaseError extends Error {
  override readonly name = "UnusableDatabaseError";
}

/** `LIMIT` for hot statements: with a bare parameter SQLite plans anew each time that they run. */
export function limitTo(count: number): Sql {
  return sql`LIMIT ${count} + 0`;
}

/** A value that is NULL without the condition, which a NOT NULL column refuses: ConflictError. */
export function valueIf(condition: Sql, value: Sql | SqlValue): Sql {
  return sql`CASE WHEN ${condition} THEN ${value} END`;
}

/** Which part of a list is wanted: items older than the one of this id, else the newest. */
export interface Pagination {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Part of a list, newest first, and where the next part begins. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}
