import { setTimeout as sleep } from "node:timers/promises";

/** Longer than any expected event takes, even on a busy machine. */
export const PATIENCE_MS = 30_000;

/** Waits until `holds` is true; `what` describes in the error what did not happen. */
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
