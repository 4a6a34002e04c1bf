import type { Batch } from "../crash/load.ts";
import type { Reply } from "./client.ts";

/** What the clients of a cluster saw. */
export interface Journal {
  readonly batches: Batch[];
  /** When writes were acknowledged, by the monotonic clock. */
  readonly acknowledgedAtMs: number[];
  /** How long each protected GET took, how many were not 200, and had no response. */
  readonly gets: { readonly tookMs: number[]; failed: number; unanswered: number };
  /** Refresh tokens that were exchanged, and chains that ended without a revocation. */
  readonly chains: { exchanged: number; broken: number };
  /** When a token was ended at one node, and how long the other still accepted it. */
  readonly revoked: { readonly endedAtMs: number; readonly tookMs: number }[];
  /** How often each kind of failure came: "503 unavailable". */
  readonly failures: Map<string, number>;
  /** The longest that a write waited for its response. */
  slowestMs: number;
}

/** Makes an empty journal. */
export function createJournal(): Journal {
  return {
    batches: [],
    acknowledgedAtMs: [],
    gets: { tookMs: [], failed: 0, unanswered: 0 },
    chains: { exchanged: 0, broken: 0 },
    revoked: [],
    failures: new Map(),
    slowestMs: 0,
  };
}

/** Records the reply to a write. */
export function noteWrite(journal: Journal, sentAtMs: number, reply: Reply | undefined): void {
  const nowMs = performance.now();
  journal.slowestMs = Math.max(journal.slowestMs, nowMs - sentAtMs);
  if (reply !== undefined && reply.status < 300) {
    journal.acknowledgedAtMs.push(nowMs);
    return;
  }
  const failure = reply === undefined ? "no response" : `${reply.status} ${codeOf(reply.text)}`;
  journal.failures.set(failure, (journal.failures.get(failure) ?? 0) + 1);
}

/** The kind of a problem (RFC 9457) or of an OAuth error (RFC 6749 §5.2). */
function codeOf(text: string): string {
  const { type, error }: { readonly type?: string; readonly error?: string } = JSON.parse(text);
  return error ?? type?.split(":").at(-1) ?? "";
}
