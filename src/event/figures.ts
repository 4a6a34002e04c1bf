import {
  COUNT,
  described,
  type Infer,
  manyOf,
  named,
  nullable,
  NUMBER,
  record,
} from "../base/shape.ts";

/** The intervals of figures, and how long the figures of each are kept, in milliseconds. */
export const STEPS = {
  minute: { ms: 60_000, keptMs: 48 * 3_600_000 },
  hour: { ms: 3_600_000, keptMs: 400 * 86_400_000 },
} as const;

/** The keys of figures of the whole service; all other keys are ids of subscriptions. */
export const SERVICE_FIGURES = ["deliveries", "logins", "tokens", "overdue"] as const;

/** The upper bounds of the buckets of durations; one more bucket holds the longer ones. */
export const BOUNDS_MS =
  [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000] as const;

/**
 * The counts of one interval: ok, bad, the bad ones that are final, the sum of durations in
 * milliseconds, and the number of durations in each bucket.
 */
export type Figures = readonly number[];

export const NO_FIGURES: Figures = [0, 0, 0, 0, ...BOUNDS_MS.map(() => 0), 0];

/** Counts one more; `isFinal` means bad without another attempt. */
export function countOne(
  figures: number[],
  isOk: boolean,
  isFinal: boolean,
  durationMs: number | undefined,
): void {
  const raise = (place: number, by: number) => figures[place] = (figures[place] ?? 0) + by;
  raise(isOk ? 0 : 1, 1);
  if (isFinal) raise(2, 1);
  if (durationMs === undefined) return;
  raise(3, durationMs);
  const bucket = BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  raise(4 + (bucket < 0 ? BOUNDS_MS.length : bucket), 1);
}

/** Returns the sum of figures, place by place; zeros if there are none. */
export function addUp(all: readonly Figures[]): Figures {
  return NO_FIGURES.map((_, place) => all.reduce((sum, each) => sum + (each[place] ?? 0), 0));
}

/**
 * Returns an estimate of the duration that this share of all did not exceed. Durations are assumed
 * to be spread evenly in a bucket, and to equal the last bound beyond it. Null if there are none.
 */
export function percentile(buckets: readonly number[], share: number): number | null {
  let left = share * buckets.reduce((sum, count) => sum + count, 0);
  for (const [place, count] of buckets.entries()) {
    const lower = BOUNDS_MS[place - 1] ?? 0;
    const width = (BOUNDS_MS[place] ?? lower) - lower;
    if (count > 0 && left <= count) return Math.round(lower + width * left / count);
    left -= count;
  }
  return null;
}

const MILLISECONDS = nullable(NUMBER);

export const FiguresRecord = named("Figures", record({
  ok: COUNT,
  bad: COUNT,
  failed: described("Last attempts that failed, or sign-ins that were not checked.", COUNT),
  mean_ms: MILLISECONDS,
  p50_ms: MILLISECONDS,
  p95_ms: MILLISECONDS,
  p99_ms: MILLISECONDS,
  buckets: described("The number of durations up to 5, 10, 25 … ms; see bounds_ms.", manyOf(COUNT)),
}));

/** Returns figures in JSON: durations in milliseconds, null if none was timed. */
export function toFiguresRecord(figures: Figures): Infer<typeof FiguresRecord> {
  const [ok = 0, bad = 0, failed = 0, ms = 0, ...buckets] = figures;
  const timed = buckets.reduce((sum, count) => sum + count, 0);
  const [p50_ms = null, p95_ms = null, p99_ms = null] =
    [0.5, 0.95, 0.99].map((share) => percentile(buckets, share));
  const mean_ms = timed === 0 ? null : Math.round(ms / timed);
  return { ok, bad, failed, mean_ms, p50_ms, p95_ms, p99_ms, buckets };
}
