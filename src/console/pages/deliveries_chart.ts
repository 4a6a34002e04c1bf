import { type Query, withQuery } from "../api.ts";
import { key } from "../table.ts";
import { chart } from "../chart.ts";
import { type Child, el } from "../element.ts";
import { closedSpan, HOUR_MS, listSteps, MINUTE_MS, splitInto } from "../figures.ts";
import { serverNow } from "../session.ts";

/** The span of a list that has no `since`. */
const USUAL_HOURS = 6;
const MOST_BARS = 36;
const ENDS = [
  { name: "delivered", look: "ok", of: "ok" },
  { name: "failed", look: "bad", of: "failed" },
] as const;

/**
 * A chart of when the deliveries of a list ended. Returns null if none did, or if the list has a
 * filter by which the server does not count.
 */
export async function deliveriesChart(
  { status = "", subscription, since, until, ...others }: Query,
): Promise<Child> {
  const ends = ENDS.filter(({ name }) => status === "" || status === name);
  if (ends.length === 0 || withQuery("", others) !== "") return null;
  const untilMs = until ? Date.parse(String(until)) : serverNow();
  const sinceMs = since ? Date.parse(String(since)) : untilMs - USUAL_HOURS * HOUR_MS;
  // Rounded, since a moment has passed since the filter's span was turned into a time.
  const wantedMs = Math.max(1, Math.round((untilMs - sinceMs) / MINUTE_MS)) * MINUTE_MS;
  const unitMs = wantedMs > 24 * HOUR_MS ? HOUR_MS : 10 * MINUTE_MS;
  const barMs = Math.ceil(wantedMs / MOST_BARS / unitMs) * unitMs;
  const bars = Math.ceil(wantedMs / barMs);
  const { step, fromMs, toMs, name } = closedSpan(bars * barMs / HOUR_MS, untilMs);
  const steps = await listSteps({ step, subscription }, fromMs, toMs);
  const columns = splitInto(bars, steps, fromMs, toMs);
  const series = ends.map(({ of, ...end }) =>
    ({ ...end, values: columns.map((each) => each[of]) }));
  if (!series.some(({ values }) => values.some(Boolean))) return null;
  const words = series.map((each) => each.name).join(" and ");
  return el("div.ended", ends.length > 1 && key(series), chart({
    label: `Deliveries by time: ${words}`,
    series, steps: columns.map(name), kind: "bars", height: "4.5rem", bare: true,
  }));
}
