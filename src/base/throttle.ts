/**
 * Makes a throttle, which counts failures by key in a sliding window. It keeps at most `limit`
 * times of a key. Beyond `maxKeys` it forgets the key that failed longest ago, so that it never
 * holds more than maxKeys × limit times.
 */
export function createThrottle({ limit, windowMs, now, maxKeys = 50_000 }: {
  readonly limit: number;
  readonly windowMs: number;
  readonly now: () => number;
  readonly maxKeys?: number;
}) {
  const failures = new Map<string, number[]>(); // in the order of the last failure

  function recent(key: string): number[] {
    const nowMs = now();
    // A later time was recorded before the clock was set back.
    return (failures.get(key) ?? []).filter((atMs) => atMs > nowMs - windowMs && atMs <= nowMs);
  }

  return {
    /** Milliseconds until the next try is allowed: 0 while fewer than the limit are remembered. */
    waitMs(key: string): number {
      const times = recent(key);
      const [oldest] = times;
      return times.length < limit || oldest === undefined ? 0 : oldest + windowMs - now();
    },
    fail(key: string): void {
      const times = [...recent(key), now()].slice(-limit);
      failures.delete(key);
      failures.set(key, times);
      if (failures.size > maxKeys) {
        const [first = key] = failures.keys();
        failures.delete(first);
      }
    },
    /** Takes back the last failure, which was counted before it was known to be one. */
    forgive: (key: string) => void failures.get(key)?.pop(),
  };
}
