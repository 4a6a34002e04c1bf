import type { Infer } from "../base/shape.ts";
import type { FiguresRecord } from "../event/figures.ts";
import { get, type Query } from "./api.ts";
import { clock, day } from "./format.ts";
import { serverNow } from "./session.ts";

/** What was counted in a span of time. */
type Sum = Pick<Infer<typeof FiguresRecord>, "ok" | "bad" | "failed" | "buckets">;
/** What was counted in one step, which begins at `at`. */
type Step = Sum & { readonly at: string; readonly mean_ms: number | null };

/** How many steps one response has at most. */
const PART = 1000;
export const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
/** The upper bounds of the buckets of durations, as the last response named them. */
export let bounds: readonly number[] = [];

/**
 * Returns the span of so many hours up to the last step that has ended and is stored, since a
 * running step would look like a drop. `name` names a step of the span; on an axis only the part
 * before the comma has room.
 */
export function closedSpan(hours: number, untilMs = serverNow()) {
  const isLong = hours > 24;
  const stepMs = isLong ? HOUR_MS : MINUTE_MS;
  const toMs = Math.floor((untilMs - 2000) / stepMs) * stepMs;
  const name = ({ at }: { readonly at: string }) => `${isLong ? `${day(at)}, ` : ""}${clock(at)}`;
  return { step: isLong ? "hour" : "minute", fromMs: toMs - hours * HOUR_MS, toMs, name };
}

/** Reads the ended steps between two times from GET /backend/series, part by part. */
export async function listSteps(query: Query, fromMs: number, toMs: number): Promise<Step[]> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  const { items, bounds_ms } = await get<{ items: Step[]; bounds_ms: number[] }>(
    "/backend/series", { ...query, from, to });
  bounds = bounds_ms;
  const last = items[PART - 1];
  return last ? [...items, ...await listSteps(query, Date.parse(last.at) + 1, toMs)] : items;
}

/** The sum of the steps. */
export function addUp(steps: readonly Sum[] = []): Sum {
  const sum = { ok: 0, bad: 0, failed: 0, buckets: [0, ...bounds].fill(0) };
  for (const { ok, bad, failed, buckets } of steps) {
    sum.ok += ok;
    sum.bad += bad;
    sum.failed += failed;
    sum.buckets = sum.buckets.map((count, at) => count + (buckets[at] ?? 0));
  }
  return sum;
}

/** Divides a span of time into equal parts, each with its steps and their sum. */
export function splitInto(parts: number, steps: readonly Step[], fromMs: number, toMs: number) {
  const partMs = (toMs - fromMs) / parts;
  const byPart = Map.groupBy(steps, ({ at }) => Math.floor((Date.parse(at) - fromMs) / partMs));
  return Array.from({ length: parts }, (_, part) => {
    const steps = byPart.get(part) ?? [];
    return { at: new Date(fromMs + part * partMs).toISOString(), steps, ...addUp(steps) };
  });
}

/**
 * Estimates from the buckets how many milliseconds this share did not exceed. `along` is the
 * position of that value, counted in buckets. Returns null as `ms` if nothing was counted.
 */
export function percentile(
  { buckets }: Sum,
  share: number,
): readonly [ms: number | null, along: number] {
  let left = share * buckets.reduce((all, count) => all + count, 0);
  const at = buckets.findIndex((count) => count > 0 && (left -= count) <= 0);
  const part = 1 + left / (buckets[at] ?? 1);
  const lower = bounds[at - 1] ?? 0;
  return at < 0 ? [null, 0] : [lower + ((bounds[at] ?? lower) - lower) * part, at + part];
}
