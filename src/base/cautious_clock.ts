/** How long a clock that was set forward must stay so until it is believed. */
const BELIEVED_AFTER_MS = 86_400_000;
/** Less than this at once is what a time service corrects. */
const STEP_MS = 1000;

/**
 * Makes a clock to remove things by, of the one on the wall and one that is never set, both in
 * milliseconds: it follows backward at once, and forward only after a day. So what a clock that was
 * wrong for a while showed as expired is there when it is set right: above all what was revoked.
 */
export function createCautiousClock(wallMs: () => number, elapsedMs: () => number): () => number {
  let offset = wallMs() - elapsedMs();
  let aheadSinceMs: number | undefined;

  return () => {
    const nowMs = elapsedMs();
    const aheadMs = wallMs() - nowMs - offset;
    if (aheadMs >= STEP_MS) aheadSinceMs ??= nowMs;
    else aheadSinceMs = undefined;
    if (aheadSinceMs === undefined || nowMs - aheadSinceMs >= BELIEVED_AFTER_MS) {
      offset += aheadMs;
      aheadSinceMs = undefined;
    }
    return Math.floor(offset + nowMs);
  };
}
