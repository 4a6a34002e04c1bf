import { get, list } from "../api.ts";
import { type Child, el } from "../element.ts";
import { filters, noneLike, since } from "../filters.ts";
import { duration, share } from "../format.ts";
import { eventAndEndpoint, linkTo } from "../names.ts";
import { head, segments } from "../parts.ts";
import type { Health, Subscription } from "../records.ts";
import { href, type Place } from "../router.ts";
import { serverNow } from "../session.ts";
import { daysOf, healthOf, PATH, showSubscription, standing } from "./subscription.ts";
import { later, listTable } from "../table.ts";

const STATUSES =
  [["", "All"], ["active", "Active"], ["paused", "Paused"], ["disabled", "Disabled"]] as const;

export const show = (place: Place) => place.id ? showOne(place) : showAll(place);

async function showAll({ query }: Place): Promise<Child> {
  const isWorst = query.get("sort") === "worst";
  const health = new Map<string, Promise<Health>>();
  // One request serves three cells.
  const of = (show: (health: Health) => Child) => ({ id }: Subscription) => {
    const asked = health.get(id) ?? healthOf(id);
    health.set(id, asked);
    return later(asked.then(show), "…");
  };
  const { node } = await listTable<Subscription>({
    path: PATH,
    query: Object.fromEntries(query),
    columns: [
      ["Event → endpoint", "", eventAndEndpoint],
      ["State", "", (item) => standing(item, true)],
      ["Last 30 days", "hide-s strip-w", of(daysOf)],
      ["Delivered today", "num hide-s", of(({ today }) => share(today))],
      ["p95", "num hide-s", of(({ today }) => duration(today.p95_ms))],
    ],
    empty: isWorst ? "None fails."
      : query.size > 0 ? noneLike("subscription")
      : "None. People make them at /account/webhooks, apps by the API.",
  });
  return [
    head("Subscriptions", "Which endpoint gets which event.",
      segments("sort", [["", "Newest"], ["worst", "Failing longest"]])),
    isWorst ? null : [
      filters(["q", "event", "owner", "app"], "Endpoint begins with…  event:  owner:  app:"),
      segments("status", STATUSES),
    ],
    el("section.card.hooks", node),
  ];
}

async function showOne(place: Place): Promise<Child> {
  const [subscription, { items }] = await Promise.all([
    get<Subscription>(`${PATH}/${encodeURIComponent(place.id)}`),
    list<{ name: string; value: string }>("/backend/config", { limit: 100 }),
  ]);
  const setting = (name: string) =>
    items.find((each) => each.name === `GATEPOST_${name}`)?.value ?? "";
  const { id, principal = "", app = "" } = subscription;
  const all = (page: string, query: Record<string, string>, words: string) =>
    el("a", { href: href(page, "", query) }, words);
  const delays = setting("RESEND_DELAYS").match(/\d+\w+/g) ?? []; // the setting may be "none"
  const disabled = since(setting("DISABLE_AFTER")) ?? "";
  return showSubscription(subscription, place, {
    attempts: delays.length + 1,
    disableAfterMs: serverNow() - Date.parse(disabled) || 0,
    crumbs: el("a", { href: href("subscriptions") }, "Subscriptions"),
    words: ["of ", linkTo(principal), " through ", linkTo(app)],
    about: [
      ["Resends", delays.length > 0 ? `after ${delays.join(", ")}` : "none"],
      ["Deliveries", all("deliveries", { subscription: id }, "All of them")],
      ["Audit", all("audit", { target: id }, "Changes to it")],
    ],
  });
}
