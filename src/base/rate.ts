import { createCache } from "./cache.ts";
import { formatDuration, parseDuration } from "./duration.ts";

/** At most `count` in `windowMs`, which is whole seconds. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

/** The rate of an endpoint, and which requests count together. */
export interface RateLimit extends Rate {
  readonly by: "caller" | "app" | "address";
}

/** What `parseRate` accepts, in words. */
export const RATE_FORM = "a rate such as 100/1m: 1 to 1000000 in 1s to 1d, whole seconds";

/** The syntax of a rate; `parseRate` checks the limits too. */
export const RATE_PATTERN = /^([1-9]\d{0,6})\/([1-9]\d{0,7}(?:ms|[smhd]))$/;

const MAX_COUNT = 1_000_000;
const MAX_WINDOW_MS = 86_400_000;

/** Returns the rate of `100/1m`, else undefined. */
export function parseRate(text: string): Rate | undefined {
  const [, number, duration = ""] = RATE_PATTERN.exec(text) ?? [];
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

/** The rounding error of sums of fractions, as a share of a step. */
const ROUNDING = 0.01;

/**
 * Makes a limiter with the generic cell rate algorithm (ITU-T I.371): a whole rate may be used at
 * once, and comes back bit by bit. A call with several claims counts for all of them, or for none
 * if one refuses. Beyond `maxKeys` keys those used longest ago are forgotten; the last `maxKeys /
 * 2` never are.
 *
 * It returns for each claim how many uses are `remaining`, in how many milliseconds all of them are
 * available again (`fullInMs`), and in how many a refused use is allowed (`waitMs`, else 0).
 *
 * @param now milliseconds of a clock that never goes back
 */
export function createLimiter(now: () => number, maxKeys = 50_000) {
  const fullAtMs = createCache<number>(maxKeys);

  return <C extends { readonly key: string; readonly rate: Rate }>(claims: readonly C[]) => {
    const nowMs = now();
    let isAllowed = true;
    const quotas = claims.map((claim) => {
      const { windowMs, count } = claim.rate;
      const stepMs = windowMs / count;
      // At most the window, which may have been longer before the rate was changed.
      const usedMs = Math.min(Math.max((fullAtMs.get(claim.key) ?? 0) - nowMs, 0), windowMs);
      const overMs = usedMs + stepMs - windowMs;
      const waitMs = overMs > stepMs * ROUNDING ? overMs : 0;
      if (waitMs > 0) isAllowed = false;
      return { claim, stepMs, fullInMs: usedMs, waitMs, remaining: 0 };
    });
    for (const quota of quotas) {
      const { claim, stepMs } = quota;
      if (isAllowed) quota.fullInMs += stepMs;
      fullAtMs.set(claim.key, nowMs + quota.fullInMs);
      quota.remaining = Math.floor((claim.rate.windowMs - quota.fullInMs) / stepMs + ROUNDING);
    }
    return quotas;
  };
}
