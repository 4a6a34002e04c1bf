import { call, get, list } from "../api.ts";
import { bodyOf, listExamples } from "../document.ts";
import { type Child, el } from "../element.ts";
import { filters, noneLike, since } from "../filters.ts";
import { askWith, fieldsOf } from "../form.ts";
import { endpoint, linkTo } from "../names.ts";
import {
  aboveTabs, answered, besideList, copied, DISPATCHED, type EventOfOne, payload,
  requested,
} from "./inspector.ts";
import { button, head, state, when } from "../parts.ts";
import type { Delivery } from "../records.ts";
import { arrivals, go, href, type Place } from "../router.ts";
import { mayWrite } from "../session.ts";
import { listen } from "../stream.ts";
import { later, listTable } from "../table.ts";
import { tabs } from "../tabs.ts";

type Event = Omit<EventOfOne, "data" | "deliveries" | "next_cursor">;

const PATH = "/backend/event";
const DELIVERIES = "/backend/delivery";
const NAMES = ["name", "subject", "source", "since", "until", "request"];

const distributed = ({ status }: Event) =>
  status === "distributed" ? state("done", "Distributed") : state("pending");

const sourceOf = (source?: string) => source ? el("code", source) : "the service itself";

const linkToDelivery = ({ id, subscription }: Delivery) =>
  el("a", { href: href("deliveries", id) }, endpoint(subscription));

async function showList(query: URLSearchParams, signal: AbortSignal) {
  const request = query.get("request");
  const given = Object.fromEntries(query);
  const made = await listTable<Event>({
    path: PATH,
    query: { ...given, since: since(query.get("since")), until: since(query.get("until")) },
    columns: [
      DISPATCHED,
      ["Event", "", ({ id, name, created_at }) => [
        el("a.main", { href: href("events", id, given) }, el("code", name)),
        el("span.sub.only-s", when(created_at)),
      ]],
      ["By", "by hide-s", ({ source }) => sourceOf(source)],
      // One request dispatches few events, so their deliveries can be read one by one.
      request ? ["Deliveries", "wide", ({ id }) => later(ofEvent(id))] : ["State", "", distributed],
    ],
    empty: query.size > 0 ? noneLike("event")
      : "No event yet: endpoints and cronjobs dispatch them, and so does the button above.",
    signal,
  });
  return {
    head: head(request ? "What this request set off" : "Events",
      request ? ["Request ", el("code", request)] : "The events that were dispatched, and by whom.",
      mayWrite() &&
        button("Dispatch…", () => dispatch(made.add), { picture: "plus", key: "first" })),
    above: filters(NAMES),
    list: made.node,
  };
}

/** The first deliveries of an event. */
async function ofEvent(event: string): Promise<Child> {
  const { items } = await list<Delivery>(DELIVERIES, { event, limit: 5 });
  return items.length === 0 ? "none"
    : items.map((item) => el("div.row", answered(item), linkToDelivery(item)));
}

async function showOne(id: string, signal: AbortSignal): Promise<Child> {
  const event = await get<EventOfOne>(`${PATH}/${id}`, { limit: 1 });
  const { name, source, principal, request, subject, scope, created_at, data } = event;
  const deliveries = await listTable<Delivery>({
    path: DELIVERIES,
    query: { event: id },
    limit: 10,
    columns: [
      ["Endpoint", "", linkToDelivery],
      ["Last answer", "", answered],
      ["Attempts", "num hide-s", ({ attempt }) => attempt],
    ],
    empty: "None: it had no subscribers, or it has not been distributed yet.",
  });
  listen({ topics: "delivery", request }, (topic, told) => {
    if (topic === "delivery" && (told as Delivery).event === id) deliveries.add(told as Delivery);
  }, signal);
  return [
    aboveTabs(name, null, distributed(event), [
      ["Id", copied(id)],
      ["Dispatched", when(created_at, true)],
      ["In", sourceOf(source)],
      ["By", principal && linkTo(principal)],
      ["Request", request && requested(request)],
      ["Only for", subject && linkTo(subject)],
      ["Needs", scope && el("code", scope)],
    ]),
    tabs([["Deliveries", () => deliveries.node], ["Data", () => payload(data)]]),
  ];
}

/** Dispatches an event by hand: a declared event with its example, or any other. */
async function dispatch(add: (item: Event) => void): Promise<void> {
  const came = arrivals;
  const known = await listExamples();
  const [name = ""] = known.keys();
  const given = { name, data: known.get(name) ?? {} };
  const fields = await fieldsOf(await bodyOf("dispatchEvent"), given);
  const [field, data] = ["name", "data"].map((each) =>
    fields.node.querySelector<HTMLInputElement>(`#field-${each}`));
  field?.setAttribute("list", "catalogue");
  field?.addEventListener("input", () => {
    const example = known.get(field.value);
    if (data && example !== undefined) data.value = JSON.stringify(example, null, 2);
  });
  const made = await askWith(fields, {
    title: "Dispatch an event",
    words: "Each of its subscriptions gets a callback with this data.",
    body: [fields.node, el("datalist", { id: "catalogue" },
      [...known.keys()].map((value) => el("option", { value })))],
    action: "Dispatch 1 event",
    came,
    act: () => call<Event>("POST", PATH, fields.read()),
  });
  if (!made) return;
  add(await get<Event>(`${PATH}/${made.id}`, { limit: 1 }));
  go(href("events", made.id));
}

export const show = (place: Place) =>
  besideList(place, (signal) => showList(place.query, signal), (id) => showOne(id, place.signal));
