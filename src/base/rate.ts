import { createCache } from "./cache.ts";
import { formatDuration, parseDuration } from "./duration.ts";

/** At most `count` in `windowMs`, which is whole seconds. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

/** The rate of an endpoint, and whose requests it counts together. */
export interface RateLimit extends Rate {
  readonly by: "caller" | "app" | "address";
}

/** What `parseRate` takes, in words. */
export const RATE_FORM = "a rate such as 100/1m: 1 to 1000000 in 1s to 1d, whole seconds";

const MAX_COUNT = 1_000_000;
const MAX_WINDOW_MS = 86_400_000;

/** Returns the rate of `100/1m`, else undefined. */
export function parseRate(text: string): Rate | undefined {
  const [, number, duration = ""] = /^([1-9]\d{0,6})\/(\w+)$/.exec(text) ?? [];
  const count = Number(number);
  const windowMs = parseDuration(duration) ?? 0;
  const isWhole = windowMs > 0 && windowMs % 1_000 === 0;
  return count <= MAX_COUNT && isWhole && windowMs <= MAX_WINDOW_MS
    ? { count, windowMs }
    : undefined;
}

/** Returns the rate as `parseRate` reads it. */
export function formatRate({ count, windowMs }: Rate): string {
  return `${count}/${formatDuration(windowMs)}`;
}

/** A rate, and what it is counted by. */
export interface Claim {
  readonly key: string;
  readonly rate: Rate;
}

/** What a rate still allows. */
export interface Quota {
  readonly remaining: number;
  /** Milliseconds until all of it is there again. */
  readonly fullInMs: number;
  /** Milliseconds until it allows what it refuses now; 0 where it allows. */
  readonly waitMs: number;
}

/**
 * Makes a limiter, by the generic cell rate algorithm (ITU-T I.371): all of a rate may be used at
 * once, and comes back bit by bit. What comes under several rates is counted by all of them, or by
 * none where one refuses. Of more than `maxKeys` keys those that were used longest ago are
 * forgotten: the last half of that is always known.
 *
 * @param now milliseconds of a clock that never goes back
 */
export function createLimiter(now: () => number, maxKeys = 50_000) {
  const fullAtMs = createCache<number>(maxKeys);

  return <C extends Claim>(claims: readonly C[]): (C & Quota)[] => {
    const nowMs = now();
    const states = claims.map((claim) => {
      const { key, rate: { count, windowMs } } = claim;
      const stepMs = windowMs / count;
      // No more than the window, which may have been longer before the rate was changed.
      const usedMs = Math.min(Math.max((fullAtMs.get(key) ?? 0) - nowMs, 0), windowMs);
      const overMs = usedMs + stepMs - windowMs;
      return { claim, stepMs, usedMs, waitMs: overMs > stepMs * ROUNDING ? overMs : 0 };
    });
    const isAllowed = states.every(({ waitMs }) => waitMs === 0);
    return states.map(({ claim, stepMs, usedMs, waitMs }) => {
      const fullInMs = isAllowed ? usedMs + stepMs : usedMs;
      fullAtMs.set(claim.key, nowMs + fullInMs);
      const remaining = Math.floor((claim.rate.windowMs - fullInMs) / stepMs + ROUNDING);
      return { ...claim, remaining, fullInMs, waitMs };
    });
  };
}

/** How much of a step sums of fractions may be off by. */
const ROUNDING = 0.01;
