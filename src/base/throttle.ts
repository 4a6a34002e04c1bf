/**
 * Makes a throttle, which counts failures by key in a sliding window. Each key has at most `limit`
 * times, and of more than `maxKeys` the one that failed longest ago is forgotten: whatever keys
 * come, it never grows past maxKeys × limit.
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
    // One of a later time was remembered before the clock was set back.
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
    /** Takes a failure back that was counted before it was known to be one. */
    forgive: (key: string) => void failures.get(key)?.pop(),
  };
}
