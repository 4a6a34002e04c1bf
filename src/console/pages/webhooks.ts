import { call, get, list } from "../api.ts";
import { asking } from "../asking.ts";
import { attemptsOf, sendAgain } from "../delivery.ts";
import { type Child, el } from "../element.ts";
import { field } from "../field.ts";
import { endpointOf } from "../names.ts";
import { time } from "../format.ts";
import { button, card, code, filters, head, renew, state } from "../parts.ts";
import type { Attempted, DeclaredEvent, Subscription } from "../records.ts";
import { go, href, type Place } from "../router.ts";
import { site } from "../session.ts";
import {
  daysOf, type Delivery, healthOf, PATH, showSubscription, standing,
} from "./subscription.ts";
import { every } from "../stream.ts";
import { later } from "../table.ts";

const MOST = 100;
const WATCH_MS = 1_000;
const VERIFY = [
  'import { createHmac, timingSafeEqual } from "node:crypto";',
  "",
  "// body: its bytes as they came, before JSON.parse",
  "export function isGenuine(headers, body, secret) {",
  '  const key = Buffer.from(secret.replace("whsec_", ""), "base64");',
  '  const time = headers["webhook-timestamp"];',
  "  if (!(Math.abs(Date.now() / 1000 - time) < 300)) return false;",
  '  const own = createHmac("sha256", key)',
  '    .update(headers["webhook-id"] + "." + time + ".").update(body).digest();',
  '  return headers["webhook-signature"].split(" ").some((each) => {',
  '    const given = Buffer.from(each.slice(3), "base64");',
  "    return given.length === own.length && timingSafeEqual(given, own);",
  "  });",
  "}",
].join("\n");

export const show = (place: Place) => place.page ? showOne(place) : showAll(place);

async function showAll({ query }: Place): Promise<Child> {
  const [{ items }, events] = await Promise.all([
    list<Subscription>(PATH, { limit: MOST }),
    listEvents(),
  ]);
  const wanted = query.get("q") ?? "";
  const found = events.filter(({ name, description }) => `${name} ${description}`.includes(wanted));
  const open = (name = "") => () => subscribe(events, name);
  return [
    head("Your webhooks", `${site.name} calls these addresses when something happens.`,
      button("New webhook", open(), { kind: "primary", picture: "plus" })),
    card(null, { padded: false }, items.length === 0
      ? el("p", { class: "empty wait" }, "None yet: subscribe your address to an event below.")
      : el("ul", { class: "list" }, items.map((item) => el("li", { class: "hook" },
        el("div", { class: "g" },
          el("a", { class: "main", href: href(item.id) }, el("b", {}, endpointOf(item.endpoint))),
          el("code", { class: "sub muted" }, item.event)),
        el("div", { class: "strip-w" }, later(healthOf(item.id).then(daysOf))), standing(item))))),
    card("What you can subscribe to", { padded: false, end: filters(["q"], "Find an event") },
      found.length === 0 ? el("p", { class: "empty wait" },
        wanted ? "No event of this name is declared." : "No event is declared yet.")
        : el("ul", { class: "list" }, found.map(({ name, description, schema }) => el("li", {},
          el("div", { class: "g" }, el("code", {}, el("b", {}, name)),
            el("p", { class: "small muted" }, description)),
          el("code", { class: "small muted" }, membersOf(schema)),
          button("Subscribe", open(name), { kind: "tiny", title: `Subscribe to ${name}` }))))),
  ];
}

async function listEvents(cursor = ""): Promise<readonly DeclaredEvent[]> {
  const query = { limit: MOST, cursor };
  const { items, next_cursor } = await list<DeclaredEvent>("/consumer/event", query);
  return next_cursor ? [...items, ...await listEvents(next_cursor)] : items;
}

function membersOf(schema: object = {}): Child {
  const { properties } = schema as { readonly properties?: object };
  return properties ? `{ ${Object.keys(properties).join(", ")} }` : null;
}

async function subscribe(events: readonly DeclaredEvent[], value: string): Promise<void> {
  const event = field("Event", { id: "event", list: "events", required: true, value });
  const endpoint = field("Your address", { type: "url", required: true, placeholder: "https://" });
  const body = () => ({ event: event.input.value, endpoint: endpoint.input.value });
  let made: Subscription & { secret: string } | undefined;
  const { ask } = await import("../dialog.ts"); // seldom wanted
  await ask({
    title: "New webhook",
    words: "Every event of this name is sent to your address, as a signed POST.",
    body: [event.node, endpoint.node,
      el("datalist", { id: "events" }, events.map(({ name }) => el("option", { value: name })))],
    action: "Subscribe",
    act: async () => made = await call("POST", PATH, body()),
  });
  if (!made) return;
  await showSecret(made.secret);
  go(href(made.id));
}

async function showSecret(secret: string): Promise<unknown> {
  const { showOnce } = await import("../dialog.ts"); // it asked before
  return showOnce("Its signing secret",
    "It proves that a callback is from here. Keep it where your code reads it: it is shown once.",
    [code(secret), el("h3", { class: "gap" }, "To verify a callback, in Node.js"), code(VERIFY)]);
}

async function showOne(place: Place): Promise<Child> {
  const subscription = await get<Subscription>(`${PATH}/${encodeURIComponent(place.page)}`);
  const { id, event } = subscription;
  const path = `${PATH}/${id}`;
  const link = (delivery: string) => href(id, "", { delivery });
  const delivery = encodeURIComponent(place.query.get("delivery") ?? "");
  let made = { id: "", secret: "" };
  return showSubscription(subscription, place, {
    deliveries: `${path}/delivery`,
    link,
    crumbs: el("a", { href: href("") }, "Your webhooks"),
    act: asking("Send test", `of ${event}`, "1 delivery with its example, signed like any other.",
      async () => made = await call("POST", `${path}/test`),
      { look: { picture: "deliveries" }, after: () => go(link(made.id)) }),
    more: asking("Replace secret", `of ${event}`,
      "The new one is shown once. The old one signs beside it for a day.",
      async () => made = await call("POST", `${path}/secret`),
      { look: { kind: "tiny" }, after: () => showSecret(made.secret) }),
    opened: delivery && await showDelivery(`${path}/delivery`, delivery, place),
  });
}

/** One delivery with its attempts, which come as they are made. */
async function showDelivery(path: string, of: string, { page: id, signal }: Place): Promise<Child> {
  const [status, again] = [el("div", { role: "status" }), el("div", { class: "row" })];
  const line = el("ol", { class: "line" });
  let isWaiting = true;
  async function read() {
    const now = await get<Attempted<Delivery>>(`${path}/${of}`);
    isWaiting = now.status === "pending";
    renew(status, now.status, () => state(now.status));
    renew(again, now, () => [sendAgain(path, now, read),
      el("a", { class: "btn tiny quiet", href: href(id) }, "Close")]);
    renew(line, now, () => attemptsOf(now));
    return now;
  }
  const { created_at } = await read();
  every(WATCH_MS, () => isWaiting && read().catch(() => {}), signal);
  return card(["Delivery of ", time(created_at)], { end: again }, status, line);
}
