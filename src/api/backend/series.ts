import { idOf } from "../../base/id.ts";
import {
  COUNT,
  described,
  manyOf,
  named,
  nullable,
  oneOf,
  optional,
  record,
  TEXT,
  withMembers,
} from "../../base/shape.ts";
import { TIME, TIME_MS, toTime } from "../../base/time.ts";
import { AttemptRecord, toAttemptRecord } from "../../event/delivery_record.ts";
import {
  addUp,
  BOUNDS_MS,
  FiguresRecord,
  SERVICE_FIGURES,
  STEPS,
  toFiguresRecord,
} from "../../event/figures.ts";
import type { Services } from "../../services.ts";
import { listLatestAttempts } from "../../store/delivery_lists.ts";
import { listFigures } from "../../store/figures.ts";
import { backend, consumer, type Operation, type Side } from "../operation.ts";
import { getSubscription } from "../subscription.ts";

const [DAY_MS, DAYS] = [86_400_000, 30];
/** The number of intervals if `from` is not given. */
const USUAL_INTERVALS = 360;
/** The time after an interval's end by which every process has stored its counts. */
const CLOSED_AFTER_MS = 2_000;

/** The query of a series. */
export const SERIES_QUERY = {
  of: optional(described("What is counted. For overdue: how late the most overdue delivery or " +
    "event is, every ten seconds.", oneOf(...SERVICE_FIGURES)), "deliveries"),
  subscription: optional(described("Counts its deliveries, instead of `of`.", idOf("s"))),
  step: optional(described("The length of an interval.", oneOf("minute", "hour")), "minute"),
  from: optional(described("No interval begins earlier; by default the last 360.", TIME_MS)),
  to: optional(described("No interval ends later; by default now.", TIME_MS)),
} as const;

const Series = named("Series", record({
  bounds_ms: described("Upper bounds of all buckets but the last.", manyOf(COUNT)),
  items: described("Intervals with any count; the first 1,000.", manyOf(
    withMembers(FiguresRecord, { at: described("When the interval began.", TIME) }),
  )),
}));

export const Health = named("SubscriptionHealth", record({
  failing_since: nullable(TIME),
  days: described("Days in UTC; the last one is today.", manyOf(record({
    day: TEXT,
    ok: COUNT,
    bad: COUNT,
    failed: COUNT,
  }))),
  today: FiguresRecord,
  answers: described("The results of today's latest attempts, 200 at most.", manyOf(record({
    answer: described("The status of a response, or the kind of failure.", TEXT),
    count: COUNT,
  }))),
  latest: nullable(AttemptRecord),
}));

type FigureServices = Pick<Services, "heavy" | "now">;

/** GET /backend/series: what was counted in each interval of time. */
export function seriesOperation({ heavy: database, now }: FigureServices): Operation {
  return backend("GET", "/backend/series", "listSeries", "List counts by interval", {
    query: SERIES_QUERY,
    returns: Series,
    async handle({ query: { of, subscription, step, from, to = Infinity } }) {
      const { ms } = STEPS[step];
      const endMs = Math.min(to, now() - CLOSED_AFTER_MS);
      const toMs = endMs - endMs % ms;
      const fromMs = from ?? toMs - USUAL_INTERVALS * ms;
      const found = await listFigures(database, subscription ?? of, step, fromMs, toMs);
      const items = found
        .map(({ atMs, figures }) => ({ at: toTime(atMs), ...toFiguresRecord(figures) }));
      return { bounds_ms: BOUNDS_MS, items };
    },
  });
}

/** GET of a subscription's health: of anybody's, or of one's own. */
export function healthOperation(
  side: Side,
  { heavy: database, now }: FigureServices,
): Operation {
  const [make, id] = side === "/consumer" ? [consumer, "getOwnSubscriptionHealth"] as const
    : [backend, "getSubscriptionHealth"] as const;
  return make("GET", `${side}/subscription/:id/health`, id,
    "A subscription's health: by day, today, and its last attempt", {
    returns: Health,
    async handle({ params: { id }, caller }) {
      const owner = side === "/consumer" ? caller : undefined;
      const { seq, failingSinceMs } = await getSubscription(database, id, owner);
      const dayOf = (timeMs: number) => timeMs - timeMs % DAY_MS;
      const todayMs = dayOf(now());
      const firstMs = todayMs - (DAYS - 1) * DAY_MS;
      const [hours, attempts] = await Promise.all([
        listFigures(database, id, "hour", firstMs, todayMs + DAY_MS),
        listLatestAttempts(database, seq),
      ]);
      const byDay = Map.groupBy(hours, ({ atMs }) => dayOf(atMs));
      const ofDay = (atMs: number) =>
        toFiguresRecord(addUp(byDay.get(atMs)?.map(({ figures }) => figures) ?? []));
      const records = attempts.map(toAttemptRecord);
      const ofToday = records.filter(({ time }) => time >= toTime(todayMs));
      const answers = Map.groupBy(ofToday, ({ status, error }) => String(status ?? error));
      return {
        failing_since: typeof failingSinceMs === "number" ? toTime(failingSinceMs) : null,
        days: Array.from({ length: DAYS }, (_, index) => {
          const atMs = firstMs + index * DAY_MS;
          const { ok, bad, failed } = ofDay(atMs);
          return { day: toTime(atMs).slice(0, 10), ok, bad, failed };
        }),
        today: ofDay(todayMs),
        answers: [...answers].map(([answer, { length: count }]) => ({ answer, count })),
        latest: records[0] ?? null,
      };
    },
  });
}
