import type { Infer } from "../../base/shape.ts";
import type { DeliveryRecord } from "../../event/delivery_record.ts";
import { call, get, list, Refusal } from "../api.ts";
import { openResend } from "../delivery.ts";
import { asking } from "../asking.ts";
import { type Child, el, svg } from "../element.ts";
import { endpointOf } from "../names.ts";
import { address, count, day, duration, number, share, time } from "../format.ts";
import {
  button, card, DATE_TIME, facts, field, figures, head, message, renew, state, when,
} from "../parts.ts";
import type { Health, Subscription } from "../records.ts";
import { go, href, type Place, refine } from "../router.ts";
import { isAccount, mayWrite } from "../session.ts";
import { every, listen, liveMark } from "../stream.ts";
import { key, listTable, strip } from "../table.ts";

export type Delivery = Infer<typeof DeliveryRecord>;

/** What the console and a user's own pages each add to the page of a subscription. */
interface Parts {
  /** How many attempts a delivery gets, and for how long a subscription may fail. */
  readonly attempts?: number;
  readonly disableAfterMs?: number;
  readonly crumbs: Child;
  readonly words?: Child;
  /** More actions: `act` beside the heading, `more` in the card About. */
  readonly act?: Child;
  readonly more?: Child;
  /** Between its health and its deliveries. */
  readonly opened?: Child;
  readonly about?: readonly (readonly [name: string, value: Child])[];
}

const SIDE = isAccount ? "/consumer" : "/backend";
const [LOOK_MS, LATEST, MOST] = [5_000, 10, 100];
const LOOKS = [
  { name: "no failed attempt", look: "ok" },
  { name: "some", look: "warn" },
  { name: "most", look: "bad" },
];

/** The path of all subscriptions, or of the user's own. */
export const PATH = `${SIDE}/subscription`;

/** Reads the health of a subscription. */
export const healthOf = (id: string) => get<Health>(`${PATH}/${id}/health`);

const clock = (iso: string) => time(iso).slice(0, -3);
// With noon, local time, the day stays the one that the server names.
const dayOf = (text = "") => day(`${text}T12:00`);

/** The address of a delivery. Users see it on the page of its subscription. */
export const deliveryHref = (subscription: string, delivery: string) =>
  isAccount ? href(subscription, "", { delivery }) : href("deliveries", delivery);

/** One bar for each of the last days. */
export const daysOf = ({ days }: Health): HTMLElement =>
  strip(`${days.length} days, of which ${days.filter(({ bad }) => bad > 0).length} with failures`,
    days.map((each) => ({ ...each, name: dayOf(each.day) })));

/** The status, and since or until when it lasts; with `isBroken` on two lines. */
export function standing(subscription: Subscription, isBroken = false): Child {
  const { status, failing_since, paused_until, disabled_reason } = subscription;
  const isFailing = status === "active" && failing_since;
  const made = state(isFailing ? "failing" : status);
  const more = isFailing ? `since ${clock(failing_since)}`
    : paused_until ? `until ${clock(paused_until)}` : disabled_reason && `(${disabled_reason})`;
  if (!more) return made;
  if (isBroken) return [made, el("span.sub", more)];
  made.append(` ${more}`);
  return made;
}

/** The page of one subscription. */
export async function showSubscription(given: Subscription, place: Place, parts: Parts) {
  let now = given;
  const { id, event, endpoint } = given;
  const path = `${PATH}/${id}`;
  const [host] = address(endpoint);
  const deliveries = isAccount ? `${path}/delivery` : "/backend/delivery";
  const own = isAccount ? {} : { subscription: id };
  const [words, trouble, health] = [el("span"), el("div"), el("div.grid")];
  const [actions, live] = [el("div.row.actions"), liveMark()];

  const read = async () => show(await get<Subscription>(path), await healthOf(id));
  function show(next: Subscription, done: Health): void {
    now = next;
    renew(words, now, () => [standing(now), " · receives ", el("code", event)]);
    const { status, error } = done.latest ?? {};
    renew(trouble, [now.status, now.failing_since, status ?? error], () =>
      troubleOf(now, done, parts.disableAfterMs));
    renew(health, done, () => healthCards(done));
    if (mayWrite()) renew(actions, [now.status, now.failing_since], actionsOf);
  }

  const change = (body: object) => call("PATCH", path, body);
  /** A button whose question says how many deliveries wait. */
  const press = (
    label: string,
    words: (waiting: string) => string,
    act: () => Promise<unknown>,
    more: Parameters<typeof asking<unknown>>[4],
  ) => asking(label, host, async () => {
    const wait = { ...own, status: "pending", limit: MOST };
    const { items, next_cursor: isMore } = await list(deliveries, wait);
    return words(isMore ? `${MOST} or more deliveries that wait`
      : count(items.length, "delivery that waits", "deliveries that wait"));
  }, act, { after: read, ...more });

  function actionsOf(): Child {
    const until = field("Until (empty: until it is resumed)", DATE_TIME);
    const pause = () => change(until.input.value
      ? { paused_until: new Date(until.input.value).toISOString() }
      : { status: "paused" });
    const look = { key: "p" };
    return [
      parts.act,
      now.status === "active" ? press("Pause",
        (waiting) => `Nothing is sent. ${waiting}, and all later ones, are kept without limit.`,
        pause, { body: until.node, look: { ...look, picture: "pause" } })
        : press("Resume", (waiting) => `Will be sent: ${waiting}, and all events from now on.`,
          () => change({ status: "active" }), { look }),
      button("Send failed again…", () =>
        openResend({ subscription: id, selection: own, failingSince: now.failing_since }),
      { kind: "primary", picture: "resend", key: "first" }),
    ];
  }

  const to = field("Endpoint", { type: "url", required: true, value: endpoint });
  const acts = el("div.row.acts",
    parts.more,
    press("Change endpoint", (waiting) => `Will also be sent there: ${waiting}.`,
      () => change({ endpoint: to.input.value }), {
        title: `Change endpoint · ${host}`,
        body: to.node,
        look: { kind: "tiny" },
        after: () => go(location.pathname, true),
      }),
    press("Delete", (waiting) => `Will be cancelled: ${waiting}. No more ${event} is sent there.`,
      () => call("DELETE", path), {
        typed: host,
        look: { kind: "tiny danger" },
        after: () => go(href(isAccount ? "" : place.page), true),
      }));

  const [latest, done] = await Promise.all([
    listTable<Delivery>({
      path: deliveries,
      query: own,
      limit: LATEST,
      columns: [
        ["Dispatched", "", ({ id: of, created_at }) =>
          el("a.main", { href: deliveryHref(id, of) }, when(created_at))],
        ["Outcome", "", outcomeOf],
        ["Attempts", "muted hide-s", ({ attempt }) =>
          "●".repeat(attempt) + "○".repeat(Math.max(0, (parts.attempts ?? 0) - attempt))],
        ["Next", "num hide-s", ({ next_attempt_at }) => when(next_attempt_at)],
      ],
      empty: `Nothing yet. Deliveries appear here once ${event} is dispatched.`,
    }),
    healthOf(id),
  ]);
  if (place.signal.aborted) return null;
  if (isAccount) {
    live.show(true);
    every(LOOK_MS, async () => {
      const { items } = await list<Delivery>(deliveries, { ...own, limit: LATEST })
        .catch(() => ({ items: null }));
      live.show(items !== null);
      items?.toReversed().forEach(latest.add);
    }, place.signal);
  } else {
    const tell = (topic: string, data: unknown) =>
      topic === "delivery" && latest.add(data as Delivery);
    listen({ topics: "delivery", subscription: id }, tell, place.signal, live.show);
  }
  every(2 * LOOK_MS, () => read().catch((error: unknown) => {
    // The subscription has been deleted, which the page says when it is shown again.
    if (error instanceof Refusal && error.status === 404) refine({});
  }), place.signal);
  show(given, done);

  const top = head(endpointOf(endpoint), [words, parts.words && [el("br"), parts.words]]);
  top.lastElementChild?.replaceWith(actions);
  return [
    el("nav.row.small.muted.crumbs", { "aria-label": "Path" }, parts.crumbs, " / ", el("code", id)),
    top, trouble, health, parts.opened,
    el("div.grid",
      card("Latest deliveries", { wide: "w8", padded: false, end: live.node }, latest.node),
      card("About", { wide: "w4" }, facts([["Made", day(given.created_at)], ...parts.about ?? []]),
        acts)),
  ];
}

function outcomeOf({ status, attempt, last_status, last_error }: Delivery): Child {
  const isWaiting = status === "pending";
  if (!isWaiting && status !== "failed") return state(status);
  const answer = `${last_status ?? last_error}, ${isWaiting ? "resend due" : "failed"}`;
  return attempt === 0 ? state("", "Waiting for its turn") : state(status, answer);
}

function troubleOf(
  { status, failing_since }: Subscription,
  { latest }: Health,
  afterMs = 0,
): Child {
  if (status !== "active" || !failing_since) return null;
  const last = latest ? `, at last by ${latest.status ?? latest.error}` : "";
  const end = clock(new Date(Date.parse(failing_since) + afterMs).toISOString());
  return message("bad",
    el("b", `Every attempt since ${clock(failing_since)} has failed${last}. `),
    "Attempts go out one at a time until one succeeds. ",
    afterMs > 0 && `If none does by ${end}, the subscription is disabled.`);
}

function healthCards(health: Health): Child {
  const { days, today, answers } = health;
  const sum = (name: "ok" | "failed") => days.reduce((all, each) => all + each[name], 0);
  const most = Math.max(...answers.map((each) => each.count));
  return [
    card("Last 30 days", { wide: "w8 days", end: key(LOOKS) }, daysOf(health),
      el("p.spread.small.muted", el("span", dayOf(days[0]?.day)), "today"),
      figures([
        ["Delivered", share({ ok: sum("ok"), failed: sum("failed") })],
        ["Today", share(today)],
        ["Time today, p95", duration(today.p95_ms)],
        ["Failed today", number(today.failed)],
      ])),
    card("Responses today", { wide: "w4 answers", padded: false }, answers.length === 0
      ? el("p.wait", "No attempt yet.")
      : el("table", el("tbody", answers.map(({ answer, count: many }) => {
        const isOk = answer.startsWith("2");
        const [width, look] = [`${(many / most) * 100}%`, isOk ? "fill ok" : "fill bad"];
        return el("tr", el("td", state(isOk ? "delivered" : "failed", answer)),
          el("td", { "aria-hidden": "true" }, svg("svg", { width: "100%", height: 8 },
            svg("rect", { width, height: 8, rx: 2, class: look }))),
          el("td.num", number(many)));
      })))),
  ];
}
