import { call, get, list, request } from "../api.ts";
import { chart } from "../chart.ts";
import { asking } from "../asking.ts";
import { type Child, el, fill } from "../element.ts";
import { eventAndEndpoint } from "../names.ts";
import {
  addUp, bounds, closedSpan, HOUR_MS, listSteps, MINUTE_MS, percentile, splitInto,
} from "../figures.ts";
import { clock, duration, number, percent, rate, share, time } from "../format.ts";
import {
  card, figures, head, isOpen, message, type Problem, renew, segments, state, when,
} from "../parts.ts";
import type { Delivery, Subscription } from "../records.ts";
import { href, type Place } from "../router.ts";
import { serverNow } from "../session.ts";
import { every, listen, liveMark } from "../stream.ts";
import { key, strip, table } from "../table.ts";
import { showTail } from "../tail.ts";

const ISO_TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
/** How many of the worst subscriptions and of the latest deliveries are shown. */
const ROWS = 7;
/** Each span: its label, its hours, and how many points and bars its charts have. */
const SPANS = [
  ["1 h", 1, 60, 12],
  ["6 h", 6, 72, 24],
  ["24 h", 24, 96, 24],
  ["7 d", 168, 84, 28],
  ["30 d", 720, 90, 30],
] as const;
type Span = (typeof SPANS)[number];

const valueOf = ([words]: Span) => words.replace(" ", "");

export async function show({ query, signal }: Place) {
  const span = SPANS.find((each) => valueOf(each) === query.get("range")) ?? SPANS[1];
  const [live, problems, board] = [liveMark(), el("div"), el("div")];
  const [{ version, revision }, { items: latest }] = await Promise.all([
    get<Record<"version" | "revision", string>>("/system/about"),
    list<Delivery>("/backend/delivery", { limit: ROWS }),
  ]);
  const tail = showTail(latest, signal);
  let isNew = latest.length === 0;
  let failingSince: string | null | undefined;

  async function paint(): Promise<void> {
    const figures = isNew ? welcome() : await showFigures(span, failingSince);
    // The figures do not change while the user reads a table or has the focus in them.
    if (!board.querySelector("details[open], :focus")) fill(board, figures);
  }
  function showProblems({ items }: { readonly items: readonly Problem[] }): void {
    const open = items.filter(isOpen);
    failingSince = open.find(({ kind }) => kind === "failing")?.since;
    renew(problems, open, () => {
      const [worst, ...others] = open.map((each) => showProblem(each, findProblems));
      return [worst, others.length > 0 &&
        el("details", el("summary", `and ${others.length} more`), others)];
    });
  }
  const repaint = () => paint().catch(() => {}); // the live mark shows if the server is silent
  const findProblems = async () => showProblems(await list<Problem>("/backend/problem"));

  listen({ topics: "delivery,problem" }, (topic, data) => {
    if (topic === "problem") return showProblems(data as { items: Problem[] });
    tail.tell(topic, data);
    if (isNew) {
      isNew = false;
      repaint();
    }
  }, signal, live.show); // before other requests, so that no delivery after `latest` is missed
  await findProblems();
  await paint();
  every(MINUTE_MS, repaint, signal);
  const spans = SPANS.map((each) => [valueOf(each), each[0]] as const);
  return el("div.overview",
    head("Overview", [live.node, ` · ${version}@${revision}`],
      segments("range", spans, valueOf(span))),
    problems, board, tail.node);
}

function welcome(): Child {
  return card("Nothing has been delivered yet", {},
    el("p.muted", "Callbacks are counted here. They begin with a subscription and an event."),
    el("a.btn.primary", { href: href("start") }, "Get started"));
}

function showProblem(problem: Problem, changed: () => Promise<void>): Child {
  const { id, kind, title, detail, since, link = "" } = problem;
  const [path = "", query] = link.split("?");
  const [, , noun, about] = path.split("/");
  const place = noun === "audit" ? noun : `${noun}s`;
  const mute = () => {
    const until = new Date(serverNow() + HOUR_MS).toISOString();
    return call("PUT", `/backend/problem/${encodeURIComponent(id)}/mute`, { until });
  };
  return message(kind === "key" ? "warn" : "bad", el("b", title),
    since && [" since ", when(since)], ". ", detail.replace(ISO_TIME, (iso) => time(iso)),
    el("div.row.actions",
      noun && el("a.btn.tiny", {
        href: href(place, about, Object.fromEntries(new URLSearchParams(query))),
      }, "See why"),
      asking("Mute for an hour", id, "It will be hidden here for everybody until then.", mute,
        { title, look: { kind: "tiny quiet" }, after: changed })));
}

async function showFigures(
  [words, hours, points, bars]: Span,
  failingSince?: string | null,
): Promise<Child> {
  const { step, fromMs, toMs, name } = closedSpan(hours);
  const seconds = hours * 3600;
  const [steps, logins, overdue, { parts }, subscriptions] = await Promise.all([
    listSteps({ step }, 2 * fromMs - toMs, toMs),
    listSteps({ step, of: "logins" }, fromMs, toMs),
    listSteps({ step, of: "overdue" }, fromMs, toMs),
    // The response has the backlog whether the server is ready or not.
    request("GET", "/system/ready").then((answer) => answer.json()).catch(() => ({})),
    worstSubscriptions(),
  ]);
  const times = Object.groupBy(steps, ({ at }) => Date.parse(at) < fromMs ? "before" : "now");
  const [now, before, signIns] = [addUp(times.now), addUp(times.before), addUp(logins)];
  const [[p95], [p95Before]] = [percentile(now, 0.95), percentile(before, 0.95)];
  const shareOf = ({ ok, failed }: typeof now) => ok / (ok + failed) * 100;
  const wrong = signIns.bad - signIns.failed;
  const [waiting, oldestS = 0] = [parts?.["backlog"], parts?.["oldest_pending_age_seconds"]];
  const to = (status: string) => href("deliveries", "", { status });

  const line = splitInto(points, steps, fromMs, toMs);
  const columns = splitInto(bars, logins, fromMs, toMs);
  const late = splitInto(points, overdue, fromMs, toMs)
    .map(({ steps }) => Math.max(0, ...steps.map(({ mean_ms }) => mean_ms ?? 0)) / 1000);
  const longest = `mean up to ${duration(Math.max(...late) * 1000)}`;
  const sent = [
    { name: "delivered", look: "ok", values: line.map(({ ok }) => ok * points / seconds) },
    { name: "failed attempt", look: "bad", values: line.map(({ bad }) => bad * points / seconds) },
  ];
  const entered = [
    { name: "right", look: "ok", values: columns.map(({ ok }) => ok) },
    { name: "wrong", look: "warn", values: columns.map(({ bad, failed }) => bad - failed) },
    { name: "refused", look: "bad", values: columns.map(({ failed }) => failed) },
  ];
  const marks = [50, 95, 99].flatMap((share) => {
    const [ms, along] = percentile(now, share / 100);
    // The last position of a chart is its last step; here it is the end of the last bar.
    const at = along * bounds.length / now.buckets.length;
    return ms === null ? [] : { at, words: `p${share} ${duration(ms)}` };
  });
  const at = (Date.parse(failingSince ?? "") - fromMs) / HOUR_MS / hours * points;
  const since = failingSince && at >= 0 && at < points
    ? [{ at, words: `failing since ${name({ at: failingSince }).split(",")[0]}` }] : [];
  return [
    figures([
      ["Deliveries", `${rate(now.ok / seconds)} /s`, `${number(now.ok)} in ${words}`,
        to("delivered")],
      ["Delivered in the end", share(now),
        against(shareOf(now), shareOf(before), "", words), to("failed")],
      ["Callback time, p95", duration(p95), against(p95, p95Before, " ms", words), to("")],
      ["Waiting", waiting === undefined ? "–" : number(waiting),
        waiting ? `the oldest for ${duration(oldestS * 1000)}` : "", to("pending")],
      ["Sign-ins", number(signIns.ok), signIns.bad > 0 && el("span.down",
        `${number(wrong)} wrong, ${number(signIns.failed)} refused`), href("audit")],
    ], "card"),
    el("div.grid",
      card("Deliveries per second", { end: key(sent), wide: "w8" }, chart({
        label: `Deliveries per second in ${words}`,
        series: sent, steps: line.map(name), kind: "area", height: "11rem", format: rate,
        marks: since,
      })),
      card("Callback time", {
        wide: "w4", end: el("span.small.muted", words),
      }, chart({
        label: `How long callbacks took: ${marks.map(({ words }) => words).join(", ")}`,
        series: [{ name: "callbacks", look: "ok", values: now.buckets }],
        steps: now.buckets.map((_, at) => bounds[at] ? duration(bounds[at]) : "more"),
        kind: "bars", height: "11rem", bare: true, marks,
      })),
      card("Subscriptions, worst first", {
        padded: false, wide: "w8", end: el("a", { href: href("subscriptions") }, "All"),
      }, subscriptions),
      el("div.w4",
        card("Sign-ins", { end: key(entered) }, chart({
          label: `Sign-ins in ${words}`, series: entered, steps: columns.map(name), kind: "bars",
        }), wrong > 0 && el("a", { href: href("audit", "", { action: "user.login_failed" }) },
          "See who, and from where")),
        card("Oldest delivery due", {
          end: el("span.small.muted", longest),
        }, chart({
          label: `Oldest delivery due: ${longest}`, kind: "area", height: "6.5rem",
          series: [{ name: "seconds", look: "ok", values: late }], steps: line.map(name),
        })))),
  ];
}

/** The failing subscriptions, then the newest, each with its last 24 hours. */
async function worstSubscriptions(): Promise<Child> {
  const parts = await Promise.all(["worst", "newest"].map((sort) =>
    list<Subscription>("/backend/subscription", { sort, limit: ROWS })));
  const all = new Map(parts.flatMap(({ items }) => items).map((each) => [each.id, each]));
  const hourMs = Math.floor(serverNow() / HOUR_MS) * HOUR_MS;
  const rows = await Promise.all([...all.values()].slice(0, ROWS).map(async (each) => {
    // With the current hour, since a share, unlike a count, does not drop in it.
    const steps = (await Promise.all([
      listSteps({ subscription: each.id, step: "hour" }, hourMs - 23 * HOUR_MS, hourMs),
      listSteps({ subscription: each.id }, hourMs, hourMs + HOUR_MS),
    ])).flat();
    const hours = splitInto(24, steps, hourMs - 23 * HOUR_MS, hourMs + HOUR_MS);
    return { ...each, ...addUp(steps), hours };
  }));
  return table<typeof rows[number]>([
    ["Event → endpoint", "", eventAndEndpoint],
    ["State", "", ({ status, failing_since, ok, hours }) => {
      if (status !== "active") return state(status);
      if (failing_since) return state("failing");
      return hours[23]?.bad ? state("pending", "Resending") : ok ? state("healthy") : state("New");
    }],
    ["Last 24 hours", "wide hide-s", ({ hours, ok, bad }) =>
      strip(`${percent(ok, ok + bad)} of the attempts of 24 hours succeeded`,
        hours.map((hour) => ({ ...hour, name: clock(hour.at) })))],
    ["Delivered", "num hide-s", share],
    ["p95", "num hide-s muted", (each) => duration(percentile(each, 0.95)[0])],
  ], rows);
}

/**
 * The change of a figure since the span before, if both exist. A share should rise, a time fall.
 */
function against(value: number | null, before: number | null, unit: string, words: string): Child {
  const change = Number(((value ?? NaN) - (before ?? NaN)).toFixed(unit ? 0 : 2));
  return change ? [
    el("span", { class: change < 0 === unit > "" ? "up" : "down" },
      `${change > 0 ? "▲" : "▼"} ${number(Math.abs(change))}${unit}`),
    ` vs. ${words} before`,
  ] : "";
}
