import { get, list } from "../api.ts";
import { type Child, el } from "../element.ts";
import { address, duration } from "../format.ts";
import { refused } from "./inspector.ts";
import type { Page } from "../pages.ts";
import { filters, head, segments, since } from "../parts.ts";
import { href, type Place } from "../router.ts";
import {
  daysOf,
  type Health,
  healthOf,
  PATH,
  share,
  showSubscription,
  standing,
  type Subscription,
} from "./subscription.ts";
import { columnsOf, later, listTable } from "../table.ts";

const STATUSES = [["", "All"], ["active", "Active"], ["paused", "Paused"], ["disabled", "Disabled"]]
  .map(([value = "", label]) => [value, label] as const);

export const page: Page = {
  title: "Subscriptions",
  show: (place) => place.id ? showOne(place) : showAll(place),
};

async function showAll({ query }: Place): Promise<Child> {
  const isWorst = query.get("sort") === "worst";
  const health = new Map<string, Promise<Health>>();
  // Three cells by one request.
  const of = (show: (health: Health) => Child) => ({ id }: Subscription) => {
    const asked = health.get(id) ?? healthOf(id);
    health.set(id, asked);
    return later(asked.then(show), "…");
  };
  const { node } = await listTable<Subscription>({
    path: PATH,
    query: Object.fromEntries(query),
    columns: columnsOf<Subscription>([
      ["Event → endpoint", "", ({ id, event, endpoint }) => {
        const [host, path] = address(endpoint);
        return [el("a", { class: "main", href: href("subscriptions", id) }, host),
          el("span", { class: "sub" }, el("code", {}, event), ` · ${path}`)];
      }],
      ["State", "", (item) => standing(item, true)],
      ["Last 30 days", "hide-s strip-w", of(daysOf)],
      ["Delivered today", "num hide-s", of(({ today }) => share(today))],
      ["p95", "num hide-s", of(({ today }) => duration(today.p95_ms))],
    ]),
    empty: isWorst ? "None fails."
      : "None. People make them at /account/webhooks, apps by the API.",
  }).catch(refused);
  return [
    head("Subscriptions", "Who is called back, on which event.",
      segments("sort", [["", "Newest"], ["worst", "Failing longest"]])),
    isWorst ? null : [
      filters(["q", "event", "owner", "app"], "endpoint, event:, owner:, app:"),
      segments("status", STATUSES),
    ],
    el("section", { class: "card hooks" }, node),
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
  // What has a page of its own is called by its name.
  const link = async (of: string) => {
    const kind = of.startsWith("u") ? "user" : /^a\d/.test(of) ? "app" : "";
    if (!kind) return of;
    const found = await get<Record<string, string>>(`/backend/${kind}/${of}`)
      .catch((): Record<string, string> => ({}));
    return el("a", { href: href(`${kind}s`, of) }, found["username"] ?? found["name"] ?? of);
  };
  const all = (page: string, query: Record<string, string>, words: string) =>
    el("a", { href: href(page, "", query) }, words);
  const delays = setting("RESEND_DELAYS").split(",");
  const disabled = since(setting("DISABLE_AFTER")) ?? "";
  return showSubscription(subscription, place, {
    deliveries: "/backend/delivery",
    query: { subscription: id },
    link: (delivery) => href("deliveries", delivery),
    attempts: delays.length + 1,
    disableAfterMs: Date.now() - Date.parse(disabled) || 0,
    crumbs: el("a", { href: href("subscriptions") }, "Subscriptions"),
    words: ["of ", await link(principal), " through ", await link(app)],
    about: [
      ["Resends", `after ${delays.join(", ")}`],
      ["Deliveries", all("deliveries", { subscription: id }, "All of them")],
      ["Audit", all("audit", { target: id }, "What was done to it")],
    ],
  });
}
