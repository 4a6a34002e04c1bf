import type { Health } from "../store/deliveries.ts";

/** A mean past which a subscription is slow; the column `health` says the same. */
const SLOW_MS = 1000;
/** A mean below it is as good as none: of those who answer at once it is not stored each time. */
const SHORT_MS = 250;
/** The part of the newest attempt in the moving mean. */
const NEWEST_WEIGHT = 1 / 4;

/** The mean duration of a subscription's attempts after one more, in milliseconds. */
export function moveMean(meanMs: number, durationMs: number): number {
  return Math.round(meanMs + (durationMs - meanMs) * NEWEST_WEIGHT);
}

/** What is stored of a mean: 0 for one that is short. */
export function meanToStore(meanMs: number): number {
  return meanMs < SHORT_MS ? 0 : meanMs;
}

/** How a subscription stands after an attempt, whose duration the mean includes. */
export function healthAfter(isSuccess: boolean, meanMs: number): Health {
  if (!isSuccess) return "failing";
  return meanMs > SLOW_MS ? "slow" : "healthy";
}
