import { call, get, list, type Query, withQuery } from "../api.ts";
import { entry, openDelivery, openResend } from "../delivery.ts";
import { type Child, el, fill } from "../element.ts";
import { filters, noneLike, since } from "../filters.ts";
import { number } from "../format.ts";
import { endpoint, linkTo } from "../names.ts";
import {
  aboveTabs, answered, besideList, copied, DISPATCHED, type EventOfOne, linked, payload,
  requested,
} from "./inspector.ts";
import { button, facts, head, segments, when } from "../parts.ts";
import type { Delivery, Attempted } from "../records.ts";
import { here, href, pageOf, type Place } from "../router.ts";
import { mayWrite } from "../session.ts";
import { listen, liveMark } from "../stream.ts";
import { later, listTable } from "../table.ts";
import { tabs } from "../tabs.ts";

const PATH = "/backend/delivery";
const STATUSES = [["", "All"], ["failed", "Failed"], ["pending", "Waiting"],
  ["delivered", "Delivered"], ["cancelled", "Cancelled"]] as const;
const NAMES = ["since", "until", "endpoint", "event", "answer", "attempt", "subscription", "name"];

/** The filters of the address, where an event is given by its id or by its name. */
function selectionOf(query: URLSearchParams): Query {
  const { event, attempt, ...given } = Object.fromEntries(query);
  return {
    ...given,
    ...event && { [pageOf(event) ? "event" : "name"]: event },
    attempt: attempt && Number(attempt),
    since: since(query.get("since")),
    until: since(query.get("until")),
  };
}

/** Whether a delivery that has just changed belongs to the list, which only the server can say. */
async function isMeant({ id, event, status }: Delivery, selection: Query): Promise<boolean> {
  const { status: wanted = status, event: one = event } = selection;
  if (wanted !== status || one !== event) return false;
  if (withQuery("", selection) === "") return true;
  const { items } = await list<Delivery>(PATH, { ...selection, event, limit: 100 });
  return items.some((item) => item.id === id);
}

/** Reads the shown delivery again. */
let refresh = () => Promise.resolve();

async function showList(query: URLSearchParams, signal: AbortSignal) {
  const selection = selectionOf(query);
  const status = query.get("status") || "failed";
  const chart = el("div");
  // The list does not wait for the chart, and shows what is wrong with the selection.
  import("./deliveries_chart.ts").then((drawn) => drawn.deliveriesChart(selection))
    .then((drawn) => fill(chart, drawn), () => {});
  const made = await listTable<Delivery>({
    path: PATH,
    query: selection,
    columns: [
      DISPATCHED,
      ["Event → endpoint", "", ({ id, name, created_at, subscription }) => [
        el("a.main", { href: href("deliveries", id, Object.fromEntries(query)) },
          endpoint(subscription)),
        el("span.sub", el("code", name), el("span.only-s", " · ", when(created_at))),
      ]],
      ["Last answer", "", answered],
      ["Attempts", "num muted hide-s", ({ attempt }) => attempt],
    ],
    empty: query.size > 0 ? noneLike("delivery")
      : "No delivery yet: an event makes one for each of its subscriptions.",
  });
  const addHere = async (item: Delivery) => {
    if (!made.node.matches(".list-of")) return; // the server refused the list
    const isThere = made.node.querySelector(`[data-id=${item.id}]`);
    const newest = made.node.querySelector("[data-id]")?.getAttribute("data-id") ?? "";
    const isNew = selection["status"] || item.id > newest;
    if (isThere || (isNew && await isMeant(item, selection).catch(() => false))) made.add(item);
  };
  const live = liveMark();
  const lookAgain = () => refresh().catch(() => {}); // the next event tries again
  listen({ topics: "delivery" }, (topic, data) => {
    const item = data as Delivery;
    if (topic === "delivery") addHere(item);
    // At a high rate the stream sends only a sample.
    if (topic === "dropped" || item.id === here().id) lookAgain();
  }, signal, (isLive) => {
    live.show(isLive);
    if (isLive) lookAgain(); // to catch up with what the stream did not report
  });
  const how = status === "pending" ? "now" : "again";
  const many = el("span", `Send ${how}…`);
  const again = () => openResend({ selection: { ...selection, status } });
  const all = button(many, again, { picture: "resend", key: "many" });
  // Delivered ones may be very many, so they are counted only when the dialog is opened.
  if (mayWrite() && status !== "delivered") {
    const what = { ...selection, status, dry_run: true };
    call<{ count: number }>("POST", `${PATH}/resend`, what).then(({ count }) => {
      fill(many, `Send ${number(count)} ${how}…`);
      all.hidden = count === 0;
    }, () => {});
  }
  return {
    head: head("Deliveries",
      [live.node, " · One event for one subscription, with each attempt to send it."],
      mayWrite() && all),
    above: [filters(NAMES), segments("status", STATUSES)],
    list: el("div", chart, made.node),
  };
}

async function showOne(id: string): Promise<Child> {
  const dispatched = el("li.ok");
  const { now, refresh: look, status, again, line } =
    await openDelivery<Attempted>(PATH, id, dispatched);
  refresh = look;
  const { name, subscription, event: of } = now();
  const event = await get<EventOfOne>(`/backend/event/${of}`, { limit: 1 });
  fill(dispatched, entry("Dispatched", event.created_at), el("span.muted.small",
    event.source ? ["in ", el("code", event.source)] : "by the service itself",
    event.request && [" · request ", requested(event.request)]));
  return [
    aboveTabs(name, again, status, [
      ["webhook-id", copied(id)],
      ["Event", [linked(of, href("events", of)),
        event.principal && [" by ", linkTo(event.principal)]]],
      ["Endpoint", el("a", { href: href("subscriptions", subscription) }, endpoint(subscription))],
    ]),
    tabs([
      ["Attempts", () => line],
      ["Payload", () => payload(event.data)],
      ["Headers", () => facts([
        ["content-type", "application/json"],
        ["webhook-id", id],
        ["webhook-timestamp", "when the attempt began, in seconds since 1970"],
        ["webhook-signature", "v1, and an HMAC-SHA-256 by each secret that is valid then"],
        ["gatepost-event", name],
        ["gatepost-attempt", String(now().attempts.at(-1)?.attempt ?? 1)],
      ])],
      ["Check a signature", () =>
        later(import("./signature_form.ts").then(({ signatureForm }) => signatureForm(id)))],
    ]),
  ];
}

export const show = (place: Place) =>
  besideList(place, (signal) => showList(place.query, signal), showOne);
