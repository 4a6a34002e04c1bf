import { idBound } from "../base/id.ts";
import { messageOf } from "../base/message_of.ts";
import { newSecret } from "../base/secret.ts";
import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import type { RqliteClient } from "./rqlite_client.ts";
import { encodeStatement, toError } from "./rqlite_statement.ts";
import { listOf, type Sql, sql } from "./sql.ts";
import type { CommitReport } from "./write_result.ts";

/**
 * One row for each group of batches that was stored, so that one whose response was lost can be
 * sent again: the second time its row is there, with how many rows each statement changed.
 */
export const RQLITE_LEDGER = sql`CREATE TABLE IF NOT EXISTS write_groups
  (id TEXT PRIMARY KEY, counts TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID`;

/** How long a batch waits at most until what became of it is known. */
const DEADLINE_MS = 5_000;
/** With less time left a batch is not sent at all, so that it is surely not stored. */
const WORTHWHILE_MS = 500;
/** How long is waited for the counts of a group that was stored. */
const COUNTS_MS = 1_000;

/** How many groups are under way; meanwhile the next one gathers. */
const IN_FLIGHT = 2;
/** After a conflict a group is a quarter as large, for all others in it are sent again. */
const [GROUP_LIMIT, CONFLICT_DIVISOR] = [256, 4];
const GROUP_CHARACTERS = 1024 * 1024;

/** How long a group's row is kept: longer than any copy of it can be on its way. */
const KEPT_MS = 10 * 60_000;
const TRIM_INTERVAL_MS = 60_000;

const IS_STORED = "UNIQUE constraint failed: write_groups.id";
/** Without a parser of rqlite's own, which looks for what no statement of ours has. */
const WRITE_PATH = "/db/execute?transaction&redirect&noparse";
/** Of so many groups copies may be on their way: those of older ones have come. */
const ABANDONED_LIMIT = 1_000;

interface Waiting extends PromiseWithResolvers<number[]> {
  /** Its statements as they are sent. */
  readonly statements: readonly string[];
  readonly characters: number;
  /** In elapsed time. */
  readonly untilMs: number;
}

/**
 * Makes the writes of a cluster. Each request is one transaction for up to 256 batches. One that
 * breaks a constraint is left out, and the others are sent again without it.
 */
export function createRqliteWriter(client: RqliteClient, observe: (report: CommitReport) => void) {
  const gathering: Waiting[] = [];
  let inFlight = 0;
  let groupLimit = GROUP_LIMIT;
  /** Groups that are not known to be stored: their ids are taken, so that no late copy is. */
  let abandoned: readonly string[] = [];
  let trimAtMs = performance.now() + TRIM_INTERVAL_MS;
  let idle: PromiseWithResolvers<void> | undefined;

  function flush(): void {
    const nowMs = performance.now();
    const isLate = gathering.findLastIndex(({ untilMs }) => untilMs - nowMs < WORTHWHILE_MS);
    for (const { reject } of gathering.splice(0, isLate + 1)) {
      reject(new UnavailableError("The database has not been reached in time"));
    }
    while (inFlight < IN_FLIGHT && gathering.length > 0) void commit(takeGroup());
    if (inFlight === 0) idle?.resolve();
  }

  function takeGroup(): Waiting[] {
    let characters = 0;
    const end = gathering.findIndex((batch, index) => {
      characters += batch.characters;
      return index === groupLimit || (index > 0 && characters > GROUP_CHARACTERS);
    });
    return gathering.splice(0, end === -1 ? gathering.length : end);
  }

  async function commit(group: readonly Waiting[]): Promise<void> {
    inFlight++;
    const startedMs = performance.now();
    let refusal: CommitReport["refusal"];
    try {
      await store(group);
    } catch (error) {
      if (error instanceof UnavailableError) refusal = "failing";
      for (const { reject } of group) reject(error);
    }
    inFlight--;
    observe({ batches: group.length, ms: performance.now() - startedMs, refusal });
    flush();
  }

  async function store(group: readonly Waiting[]): Promise<void> {
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
    const body = group.flatMap(({ statements }) => statements.flatMap((text) => [text, count]));
    const untilMs = Math.min(...group.map((batch) => batch.untilMs));
    let isStored = false;
    try {
      const results = await client.ask(() => WRITE_PATH, [...head, ...body], untilMs);
      const error = results.at(-1)?.error;
      isStored = error === undefined || error === IS_STORED;
      if (error !== undefined && !isStored) {
        return leaveOut(group, results.length - head.length - 1, error);
      }
      const counts = error === undefined
        ? results.slice(head.length).filter((_, index) => index % 2 === 0)
          .map(({ rows_affected = 0 }) => rows_affected)
        : await readCounts(id);
      groupLimit = Math.min(2 * groupLimit, GROUP_LIMIT);
      let at = 0;
      for (const { statements, resolve } of group) {
        resolve(counts.slice(at, at += statements.length));
      }
    } finally {
      abandoned = isStored ? abandoned.filter((each) => !known.includes(each))
        : [...abandoned, id].slice(-ABANDONED_LIMIT);
    }
  }

  /** Nothing is stored, because of the statement at this position: its batch fails alone. */
  function leaveOut(group: readonly Waiting[], position: number, message: string): void {
    const error = toError(message);
    // What the leader could not store, on a full disk say, the others may have.
    if (error instanceof UnavailableError) throw new OutcomeUnknownError(message);
    let at = 0;
    const failed = group.find(({ statements }) => (at += 2 * statements.length) > position);
    if (position < 0 || failed === undefined) throw error;
    failed.reject(error);
    groupLimit = Math.ceil(groupLimit / CONFLICT_DIVISOR);
    gathering.unshift(...group.filter((batch) => batch !== failed));
  }

  /** What the group had changed when it was stored; the response to that was lost. */
  async function readCounts(id: string): Promise<number[]> {
    const select = encodeStatement(sql`SELECT counts FROM write_groups WHERE id = ${id}`);
    try {
      const untilMs = performance.now() + COUNTS_MS;
      const path = "/db/query?level=strong&redirect";
      const [found] = await client.ask(() => path, [select], untilMs);
      return String(found?.values?.[0]?.[0]).trimEnd().split(" ").map(Number);
    } catch (cause) {
      throw new OutcomeUnknownError(`It is stored, but: ${messageOf(cause)}`, { cause });
    }
  }

  function trim(): Sql[] {
    if (performance.now() < trimAtMs) return [];
    trimAtMs = performance.now() + TRIM_INTERVAL_MS;
    // By the later clock a row is young, by the earlier one old: one that is wrong loses no row.
    const keptFromMs = Date.now() + Math.min(client.aheadMs(), 0) - KEPT_MS;
    return [sql`DELETE FROM write_groups WHERE id < ${idBound("w", keptFromMs)}`];
  }

  return {
    write(batch: readonly Sql[]): Promise<number[]> {
      if (idle) return Promise.reject(new UnavailableError("The database is closed"));
      if (batch.length === 0) return Promise.resolve([]);
      const statements = batch.map(encodeStatement);
      const waiting = {
        statements,
        characters: statements.reduce((sum, { length }) => sum + length, 0),
        untilMs: performance.now() + DEADLINE_MS,
        ...Promise.withResolvers<number[]>(),
      };
      gathering.push(waiting);
      if (gathering.length === 1 && inFlight < IN_FLIGHT) setImmediate(flush);
      return waiting.promise;
    },
    /** Awaits what was given to `write`; from now on nothing is taken. */
    async close(): Promise<void> {
      idle = Promise.withResolvers();
      flush();
      await idle.promise;
    },
  };
}
