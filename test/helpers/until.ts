import { setTimeout as sleep } from "node:timers/promises";

/** Longer than anything on its way takes, on a machine that does something else as well. */
export const PATIENCE_MS = 30_000;

/** Waits until something holds; `what` says what did not come about. */
export async function until(
  holds: () => unknown,
  what: () => string | Promise<string> = () => "it did not come about",
  patienceMs = PATIENCE_MS,
): Promise<void> {
  for (const endMs = Date.now() + patienceMs; !await holds();) {
    if (Date.now() > endMs) throw new Error(`waited in vain: ${await what()}`);
    await sleep(15);
  }
}
