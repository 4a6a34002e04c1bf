import { call, get, list, listUntil } from "../api.ts";
import { openDelivery } from "../delivery.ts";
import { asking } from "../asking.ts";
import { type Child, el } from "../element.ts";
import { filters } from "../filters.ts";
import { endpointOf } from "../names.ts";
import { time } from "../format.ts";
import { button, card, head } from "../parts.ts";
import type { Attempted, DeclaredEvent, Subscription } from "../records.ts";
import { go, href, type Place } from "../router.ts";
import { site } from "../session.ts";
import {
  daysOf, type Delivery, deliveryHref, healthOf, PATH, showSubscription, standing,
} from "./subscription.ts";
import { every } from "../stream.ts";
import { later } from "../table.ts";

const MOST = 100;
const WATCH_MS = 1_000;

const seldomWanted = () => import("./new_webhook.ts");

export const show = (place: Place) => place.page ? showOne(place) : showAll(place);

async function showAll({ query }: Place): Promise<Child> {
  const [{ items }, { items: events }] = await Promise.all([
    list<Subscription>(PATH, { limit: MOST }),
    listUntil<DeclaredEvent>("/consumer/event", {}, Infinity),
  ]);
  const wanted = query.get("q") ?? "";
  const found = events.filter(({ name, description }) => `${name} ${description}`.includes(wanted));
  const open = (name = "") => async () => (await seldomWanted()).subscribe(events, name);
  return [
    head("Your webhooks", `${site.name} calls these addresses when something happens.`,
      button("New webhook", open(), { kind: "primary", picture: "plus" })),
    card(null, { padded: false }, items.length === 0
      ? el("p.empty.wait", "None yet: subscribe your address to an event below.")
      : el("ul.list", items.map((item) => el("li.hook",
        el("div.g",
          el("a.main", { href: href(item.id) }, el("b", endpointOf(item.endpoint))),
          el("code.sub.muted", item.event)),
        el("div.strip-w", later(healthOf(item.id).then(daysOf))), standing(item))))),
    card("What you can subscribe to", { padded: false, end: filters(["q"], "Find an event") },
      found.length === 0 ? el("p.empty.wait",
        wanted ? "No event has this name." : "No event is declared yet.")
        : el("ul.list", found.map(({ name, description, schema }) => el("li",
          el("div.g", el("code", el("b", name)), el("p.small.muted", description)),
          el("code.small.muted", membersOf(schema)),
          button("Subscribe", open(name), { kind: "tiny", title: `Subscribe to ${name}` }))))),
  ];
}

function membersOf(schema: object = {}): Child {
  const { properties } = schema as { readonly properties?: object };
  return properties ? `{ ${Object.keys(properties).join(", ")} }` : null;
}

async function showOne(place: Place): Promise<Child> {
  const subscription = await get<Subscription>(`${PATH}/${encodeURIComponent(place.page)}`);
  const { id, event } = subscription;
  const path = `${PATH}/${id}`;
  const delivery = encodeURIComponent(place.query.get("delivery") ?? "");
  return showSubscription(subscription, place, {
    crumbs: el("a", { href: href("") }, "Your webhooks"),
    act: asking("Send test", `of ${event}`, "1 delivery with its example, signed like any other.",
      () => call<{ id: string }>("POST", `${path}/test`),
      { look: { picture: "deliveries" }, after: (made) => go(deliveryHref(id, made.id)) }),
    more: asking("Replace secret", `of ${event}`,
      "The new secret is shown only once. The old one also signs for a day.",
      async () => ({
        ...await seldomWanted(), // loaded first: without it the secret would be lost
        ...await call<{ secret: string }>("POST", `${path}/secret`),
      }),
      { look: { kind: "tiny" }, after: ({ showSecret, secret }) => showSecret(secret) }),
    opened: delivery && later(showDelivery(`${path}/delivery`, delivery, place)),
  });
}

/** One delivery with its attempts; new attempts appear when they are made. */
async function showDelivery(path: string, of: string, { page: id, signal }: Place): Promise<Child> {
  const { now, refresh, status, again, line } = await openDelivery<Attempted<Delivery>>(path, of);
  every(WATCH_MS, () => now().status === "pending" && refresh(), signal);
  const close = el("a.btn.tiny.quiet", { href: href(id) }, "Close");
  return card(["Delivery of ", time(now().created_at)], { end: el("div.row", again, close) },
    el("p", status), line);
}
