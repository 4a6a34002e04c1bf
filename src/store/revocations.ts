import { idTimeMs } from "../base/id.ts";
import type { Caller } from "../oauth/principal.ts";
import { type Database, sql, type Statement } from "./database.ts";

/**
 * Ends the token or grant of this id; or of a user or an app, the tokens whose grant was made by then.
 * It is kept for as long as one could be alive.
 */
export function revocation(target: string, cutAtMs: number, untilMs: number): Statement {
  return sql(
    "INSERT INTO revocations (target, cut_at, until) VALUES (?1, ?2, ?3)",
    target,
    cutAtMs,
    untilMs,
  );
}

/** What has been revoked, in memory: asking it costs no database read. */
export interface Revocations {
  /** Whether the token of this caller has been revoked, by itself or with its grant, user or app. */
  has(caller: Pick<Caller, "jti" | "grantId" | "sub" | "clientId">): boolean;
  /** Takes in what any process has stored since the last call; call it after each own revocation. */
  refresh(): Promise<void>;
}

interface RevocationRow {
  seq: number;
  target: string;
  cutAtMs: number;
  untilMs: number;
}

const SELECT = `SELECT seq, target, cut_at AS cutAtMs, until AS untilMs FROM revocations WHERE`;

/** Opens the list with all that is in force; what has expired is not read, were it never purged. */
export async function openRevocations(database: Database, now: () => number): Promise<Revocations> {
  const cuts = new Map<string, { cutAtMs: number; untilMs: number }>();
  let lastSeq = 0;
  let nextSweepMs = 0;

  async function refresh(): Promise<void> {
    take(await database.query<RevocationRow>(`${SELECT} seq > ?1 ORDER BY seq`, [lastSeq]));
    sweep();
  }

  function take(rows: readonly RevocationRow[]): void {
    for (const { seq, target, cutAtMs, untilMs } of rows) {
      const known = cuts.get(target);
      cuts.set(target, {
        cutAtMs: Math.max(cutAtMs, known?.cutAtMs ?? 0),
        untilMs: Math.max(untilMs, known?.untilMs ?? 0),
      });
      lastSeq = Math.max(lastSeq, seq);
    }
  }

  function sweep(): void {
    const nowMs = now();
    if (nowMs < nextSweepMs) return;
    nextSweepMs = nowMs + 60_000;
    for (const [target, cut] of cuts) if (cut.untilMs <= nowMs) cuts.delete(target);
  }

  const newest = await database.query<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM revocations",
  );
  take(await database.query<RevocationRow>(`${SELECT} until > ?1`, [now()]));
  lastSeq = Math.max(lastSeq, newest[0]?.seq ?? 0);
  return {
    refresh,
    has({ jti, grantId, sub, clientId }) {
      if (cuts.size === 0) return false;
      if (cuts.has(jti) || cuts.has(grantId)) return true;
      return [sub, clientId].some((target) => {
        const cut = cuts.get(target);
        return cut !== undefined && idTimeMs(grantId) <= cut.cutAtMs;
      });
    },
  };
}
