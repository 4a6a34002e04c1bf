import { setTimeout as sleep } from "node:timers/promises";

/** Longer than any expected event takes, even on a busy machine. */
export const PATIENCE_MS = 30_000;

/**
 * Waits until `look` finds something, which is returned; `what` describes in the error what did not
 * happen. It looks ever more rarely: each look takes time that what is awaited may need.
 */
export async function until<T>(
  look: () => T,
  what: () => string | Promise<string> = () => "it did not come about",
  patienceMs = PATIENCE_MS,
): Promise<NonNullable<Awaited<T>>> {
  const sinceMs = Date.now();
  for (;;) {
    const found = await look();
    if (found) return found;
    const waitedMs = Date.now() - sinceMs;
    if (waitedMs > patienceMs) throw new Error(`waited in vain: ${await what()}`);
    await sleep(Math.min(Math.max(15, waitedMs / 10), 100));
  }
}
