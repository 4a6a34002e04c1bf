/** A clock that ignores steps of the system's clock until it is told to follow them. */
export type SteadyClock = ReturnType<typeof createSteadyClock>;

/** A smaller difference is no step: clocks are corrected by a little all the time. */
export const LEAST_STEP_MS = 1_000;

/** Makes a steady clock of the system's clock and one that is never set, both in milliseconds. */
export function createSteadyClock(wallMs: () => number, elapsedMs: () => number) {
  const offset = () => wallMs() - elapsedMs();
  let followed = offset();
  return {
    /** Milliseconds since 1970. */
    now: () => Math.round(followed + elapsedMs()),
    /** How far the system's clock has been set since, in ms; 0 below `LEAST_STEP_MS`. */
    stepMs(): number {
      const stepMs = Math.round(offset() - followed);
      return Math.abs(stepMs) < LEAST_STEP_MS ? 0 : stepMs;
    },
    /** Follows the system's clock, or by `byMs` only. */
    follow(byMs = offset() - followed) {
      followed += byMs;
    },
  };
}

/** How long a clock that was set forward must stay so until it is believed. */
const BELIEVED_AFTER_MS = 86_400_000;

/**
 * Makes the clock that deletions use. It follows the system's clock backward at once, and forward
 * only after a day, by the smallest lead that the system's clock had all day. So a system clock
 * that is wrong for less than a day deletes nothing that has not expired, above all no revocation.
 *
 * @param lastMs the clock at the last deletion: the system's clock may have been set wrong since
 */
export function createCautiousClock(
  wallMs: () => number,
  elapsedMs: () => number,
  lastMs = wallMs(),
): () => number {
  const clock = createSteadyClock(wallMs, elapsedMs);
  clock.follow(Math.min(0, lastMs - wallMs()));
  let sinceMs = 0;
  let byMs = 0; // the system's clock has been ahead since `sinceMs`, by at least this
  return () => {
    const stepMs = Math.max(clock.stepMs(), 0);
    if (byMs === 0) sinceMs = elapsedMs();
    byMs = Math.min(byMs || stepMs, stepMs);
    if (byMs === 0) clock.follow();
    else if (elapsedMs() - sinceMs >= BELIEVED_AFTER_MS) {
      clock.follow(byMs);
      byMs = 0;
    }
    return clock.now();
  };
}
