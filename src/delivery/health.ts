import type { Health } from "../store/deliveries.ts";

/** A mean past which a subscription is slow; the column `health` has the same limit. */
const SLOW_MS = 1000;
/** A shorter mean is stored as 0, so that quick subscribers cost no write for it each time. */
const SHORT_MS = 250;
/** The weight of the newest attempt in the moving mean. */
const NEWEST_WEIGHT = 1 / 4;

/** The mean duration of a subscription's attempts after one more, in milliseconds. */
export function moveMean(meanMs: number, durationMs: number): number {
  return Math.round(meanMs + (durationMs - meanMs) * NEWEST_WEIGHT);
}

/** What is stored of a mean: 0 for one that is short. */
export function meanToStore(meanMs: number): number {
  return meanMs < SHORT_MS ? 0 : meanMs;
}

/** The health of a subscription after an attempt, whose duration the mean includes. */
export function healthAfter(isSuccess: boolean, meanMs: number): Health {
  if (!isSuccess) return "failing";
  return meanMs > SLOW_MS ? "slow" : "healthy";
}
