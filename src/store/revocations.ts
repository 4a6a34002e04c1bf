import { idTimeMs } from "../base/id.ts";
import type { Caller } from "../oauth/principal.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findRow, findValue, hasRow } from "../database/rows.ts";
import { MAX_SKEW_MS } from "../database/rqlite_clock.ts";
import { sql, type Sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";

/**
 * Ends the token or grant with this id. For a user, an app, or a user through an app (both ids),
 * ends the tokens whose grant was made by `notBeforeMs`. Kept until none of them can be valid.
 */
export function revocation(target: string, notBeforeMs: number, untilMs: number): Sql {
  return sql`INSERT INTO revocations (target, notBeforeMs, untilMs)
    VALUES (${target}, ${notBeforeMs}, ${untilMs})`;
}

/** The ids by which a caller's token can have been revoked. */
type Revocable = Pick<Caller, "jti" | "grantId" | "sub" | "clientId">;

/** The revocations in memory: a look-up reads the database only if not all of them fit. */
export type Revocations = Awaited<ReturnType<typeof loadRevocations>>;

type RevocationRow = Readonly<Record<"seq" | "notBeforeMs" | "untilMs", number>> & {
  readonly target: string;
};

/** How many are held in memory: about 20 MiB. */
const HELD_LIMIT = 100_000;
/** How many are read at once, so that other work can run in between. */
const READ_LIMIT = 2_000;

/** Loads the revocations in force, those that last longest up to `limit`; reads others at need. */
export async function loadRevocations(database: Database, now: () => number, limit = HELD_LIMIT) {
  const memory = createMemory(limit, now);
  const selectLast = sql`SELECT max(seq) FROM revocations`;
  let lastSeq = await findValue<number | null>(database, selectLast) ?? 0;
  type Changes = Readonly<Record<"count" | "issuers", number>>;
  const readChanges = () => findRow<Changes>(database, sql`SELECT * FROM account_changes`);
  let changes = await readChanges();

  /** Loads what any process has changed since; call it after a revocation or a change. */
  async function refresh(): Promise<void> {
    changes = await readChanges();
    for (let full = true; full;) {
      const rows = await database.query<RevocationRow>(
        sql`SELECT * FROM revocations WHERE seq > ${lastSeq} ORDER BY seq ${limitTo(READ_LIMIT)}`,
      );
      rows.forEach(memory.hold);
      lastSeq = Math.max(lastSeq, rows.at(-1)?.seq ?? 0);
      full = rows.length === READ_LIMIT;
      if (full) await new Promise((resolve) => setImmediate(resolve));
    }
    memory.sweep();
  }

  /** Reads the revocations in force, those that last longest first. */
  async function readInForce(): Promise<void> {
    let [untilMs, seq] = [Number.MAX_SAFE_INTEGER, 0];
    for (let full = true; full && !memory.isPartial();) {
      const rows = await database.query<RevocationRow>(
        sql`SELECT * FROM revocations
          WHERE untilMs > ${now()} AND (untilMs, seq) < (${untilMs}, ${seq})
          ORDER BY untilMs DESC, seq DESC ${limitTo(READ_LIMIT)}`,
      );
      rows.forEach(memory.hold);
      ({ untilMs, seq } = rows.at(-1) ?? { untilMs, seq });
      full = rows.length === READ_LIMIT;
    }
  }

  /** Looks into the database. Expired rows do no harm: their tokens have expired as well. */
  function isStored({ jti, grantId, sub, clientId }: Revocable): Promise<boolean> {
    return hasRow(
      database,
      sql`SELECT 1 FROM revocations WHERE target IN (${jti}, ${grantId})
        UNION ALL SELECT 1 FROM revocations
          WHERE target IN (${sub}, ${clientId}, ${`${sub} ${clientId}`})
            AND notBeforeMs >= ${idTimeMs(grantId)}
        LIMIT 1`,
    );
  }

  await readInForce();
  return {
    refresh: () => afterWrite(refresh()),
    /** The number of all changes of apps and users at the last `refresh`. */
    accountChanges: () => changes?.count,
    /** The number of all changes of issuers and existing principals; 0 before the first change. */
    issuerChanges: () => changes?.issuers ?? 0,
    /**
     * Whether this caller's token has been revoked, by itself or with its grant, user, app or both.
     * A promise if the database must be read, because more are in force than memory holds.
     */
    has: (caller: Revocable): boolean | Promise<boolean> =>
      memory.has(caller) || (memory.isPartial() && isStored(caller)),
  };
}

/** Holds revocations in memory, up to `limit` targets: those that come first. */
function createMemory(limit: number, now: () => number) {
  const held = new Map<string, Omit<RevocationRow, "target">>();
  let allHeldFromMs = 0; // until then some in force may be missing here
  let holdsPairs = false; // of a user and an app: to look for one costs as much as all the rest
  let nextSweepMs = 0;

  function isRevoked(target: string, grantId: string): boolean {
    const known = held.get(target);
    return known !== undefined && idTimeMs(grantId) <= known.notBeforeMs;
  }

  return {
    /** Whether some are in force that memory does not hold. */
    isPartial: () => allHeldFromMs > 0 && allHeldFromMs > now(),
    has: ({ jti, grantId, sub, clientId }: Revocable) =>
      held.size > 0 && (
        held.has(jti) || held.has(grantId) || isRevoked(sub, grantId) ||
        isRevoked(clientId, grantId) || (holdsPairs && isRevoked(`${sub} ${clientId}`, grantId))
      ),
    hold({ target, seq, notBeforeMs, untilMs }: RevocationRow): void {
      const known = held.get(target);
      if (!known && held.size >= limit) {
        allHeldFromMs = Math.max(allHeldFromMs, untilMs);
        return;
      }
      holdsPairs ||= target.includes(" ");
      // A time ahead of all clocks is by a clock that was set back since: the later row counts.
      const isDated = known !== undefined && known.seq < seq &&
        known.notBeforeMs > Math.max(now(), notBeforeMs) + MAX_SKEW_MS;
      held.set(target, {
        seq: Math.max(seq, known?.seq ?? 0),
        notBeforeMs: isDated ? notBeforeMs : Math.max(notBeforeMs, known?.notBeforeMs ?? 0),
        untilMs: Math.max(untilMs, known?.untilMs ?? 0),
      });
    },
    /** Removes what has expired, once a minute. */
    sweep(): void {
      const nowMs = now();
      if (nowMs < nextSweepMs) return;
      nextSweepMs = nowMs + 60_000;
      for (const [target, { untilMs }] of held) if (untilMs <= nowMs) held.delete(target);
    },
  };
}
