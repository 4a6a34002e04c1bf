/** A clock that goes on evenly when the one on the wall is set, until it is told to follow. */
export interface SteadyClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** By how much the wall's clock has been set since, in milliseconds; 0 below a second. */
  stepMs(): number;
  follow(): void;
}

/** Makes one of the clock on the wall and one that is never set, both in milliseconds. */
export function createSteadyClock(wallMs: () => number, elapsedMs: () => number): SteadyClock {
  const offset = () => wallMs() - elapsedMs();
  let followed = offset();
  return {
    now: () => Math.round(followed + elapsedMs()),
    stepMs() {
      const stepMs = Math.round(offset() - followed);
      return Math.abs(stepMs) < 1000 ? 0 : stepMs;
    },
    follow() {
      followed = offset();
    },
  };
}
