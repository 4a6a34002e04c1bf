import { type Readiness, READY_STATES } from "../api/system/status.ts";
import type { Database } from "../database/database.ts";
import { type Backlog, measureBacklog } from "../store/backlog.ts";
import { ageSeconds } from "./metrics.ts";

// A measurement is reused for 20 times as long as it took. So measuring takes at most a twentieth
// of the process's time, and a cheap measurement is always fresh.
const REUSED_TIMES = 20;

/** Makes the reader of the backlog; simultaneous callers share one measurement. */
export function createBacklogReader(database: Database, now: () => number): () => Promise<Backlog> {
  let current: Promise<Backlog> | undefined;

  async function measure(): Promise<Backlog> {
    const startedAtMs = performance.now();
    const backlog = await measureBacklog(database, now());
    const reusedMs = REUSED_TIMES * (performance.now() - startedAtMs);
    setTimeout(forget, reusedMs).unref();
    return backlog;
  }

  function forget(): void {
    current = undefined;
  }

  return () => current ??= measure().catch((error: unknown) => {
    forget();
    throw error;
  });
}

/**
 * Makes the check of GET /system/ready. The backlog is measured only if the parts are shown.
 *
 * @param parts return the state of each part as one word; only `ok`, `on` and `off` mean ready
 */
export function createReadiness(
  parts: Readonly<Record<string, () => string | Promise<string>>>,
  backlog: () => Promise<Backlog>,
  now: () => number,
): (withParts: boolean) => Promise<Readiness> {
  return async (withParts) => {
    const states = await Promise.all(
      Object.entries(parts).map(async ([name, state]) => [name, await state()] as const),
    );
    const isReady = states.every(([, state]) => READY_STATES.has(state));
    if (!withParts) return { isReady, parts: {} };
    const waiting = await backlog().catch(() => undefined);
    return {
      isReady,
      parts: {
        ...Object.fromEntries(states),
        backlog: waiting ? waiting.events + waiting.deliveries : null,
        oldest_pending_age_seconds: waiting ? ageSeconds(waiting.oldestMs, now) : null,
      },
    };
  };
}
