/** A clock that goes on evenly when the system's clock is set, until it follows that. */
export type SteadyClock = ReturnType<typeof createSteadyClock>;

/** Less is no step: clocks are corrected by little all the time. */
export const LEAST_STEP_MS = 1_000;

/** Makes one of the system's clock and one that is never set, both in milliseconds. */
export function createSteadyClock(wallMs: () => number, elapsedMs: () => number) {
  const offset = () => wallMs() - elapsedMs();
  let followed = offset();
  return {
    /** Milliseconds since 1970. */
    now: () => Math.round(followed + elapsedMs()),
    /** By how many milliseconds the system's clock has been set since; 0 below `LEAST_STEP_MS`. */
    stepMs(): number {
      const stepMs = Math.round(offset() - followed);
      return Math.abs(stepMs) < LEAST_STEP_MS ? 0 : stepMs;
    },
    /** Follows it, or by so many milliseconds only. */
    follow(byMs = offset() - followed) {
      followed += byMs;
    },
  };
}

/** How long a clock that was set forward must stay so until it is believed. */
const BELIEVED_AFTER_MS = 86_400_000;

/**
 * Makes a clock to delete by: it follows the system's clock backward at once, and forward only
 * after a day, by what that was ahead all day. So what a clock that was wrong for a while showed as
 * expired is still there when it is right again: above all what was revoked.
 *
 * @param lastMs what the clock showed when it was last gone by: it may be wrong since
 */
export function createCautiousClock(
  wallMs: () => number,
  elapsedMs: () => number,
  lastMs = wallMs(),
): () => number {
  const clock = createSteadyClock(wallMs, elapsedMs);
  clock.follow(Math.min(0, lastMs - wallMs()));
  let sinceMs = 0;
  let byMs = 0; // it has been ahead since then, at least by so much
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
