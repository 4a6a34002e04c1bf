import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import type { RqliteClient } from "./rqlite_client.ts";
import { createLedger, IS_STORED } from "./rqlite_ledger.ts";
import { encodeStatement, toError } from "./rqlite_statement.ts";
import type { Sql } from "./sql.ts";
import type { CommitReport } from "./write_result.ts";

/** How long a batch waits for its outcome at most. */
const DEADLINE_MS = 5_000;
/** With less time left a batch is not sent at all, so that it is surely not stored. */
const WORTHWHILE_MS = 500;

/** The most groups in flight; meanwhile the next one gathers. */
const IN_FLIGHT = 2;
/** A conflict makes groups a quarter as large, since the rest of a group is sent again. */
const [GROUP_LIMIT, CONFLICT_DIVISOR] = [256, 4];
const GROUP_CHARACTERS = 1024 * 1024;

/** Without rqlite's parser, which looks for constructs that no statement of ours has. */
const WRITE_PATH = "/db/execute?transaction&redirect&noparse";

interface Waiting extends PromiseWithResolvers<number[]> {
  /** The encoded statements. */
  readonly statements: readonly string[];
  readonly characters: number;
  /** The deadline, by `performance.now()`. */
  readonly untilMs: number;
}

/**
 * Makes the writer of a cluster. Each request is one transaction for up to 256 batches. A batch
 * that breaks a constraint fails alone, and the others are sent again without it.
 */
export function createRqliteWriter(
  client: Pick<RqliteClient, "ask" | "aheadMs">,
  observe: (report: CommitReport) => void,
) {
  const ledger = createLedger(client);
  const gathering: Waiting[] = [];
  let inFlight = 0;
  let groupLimit = GROUP_LIMIT;
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
      refusal = "failing";
      for (const { reject } of group) reject(error);
    }
    inFlight--;
    observe({ batches: group.length, ms: performance.now() - startedMs, refusal });
    flush();
  }

  async function store(group: readonly Waiting[]): Promise<void> {
    const { head, count, finish, readCounts } = ledger.begin();
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
        : await readCounts();
      groupLimit = Math.min(2 * groupLimit, GROUP_LIMIT);
      let at = 0;
      for (const { statements, resolve } of group) {
        resolve(counts.slice(at, at += statements.length));
      }
    } finally {
      finish(isStored);
    }
  }

  /** Rejects the batch whose statement at `position` failed the group; requeues the others. */
  function leaveOut(group: readonly Waiting[], position: number, message: string): void {
    const error = toError(message);
    // Other nodes may have stored what the leader could not, for example with a full disk.
    if (error instanceof UnavailableError) throw new OutcomeUnknownError(message);
    let at = 0;
    const failed = group.find(({ statements }) => (at += 2 * statements.length) > position);
    if (position < 0 || failed === undefined) throw error;
    failed.reject(error);
    groupLimit = Math.ceil(groupLimit / CONFLICT_DIVISOR);
    gathering.unshift(...group.filter((batch) => batch !== failed));
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
      if (gathering.length === 1) setImmediate(flush);
      return waiting.promise;
    },
    /** Waits for pending writes; from now on accepts none. */
    async close(): Promise<void> {
      idle = Promise.withResolvers();
      flush();
      await idle.promise;
    },
  };
}
