import { get, list } from "../api.ts";
import { type Child, el } from "../element.ts";
import { count, duration, time } from "../format.ts";
import { endpoint } from "../names.ts";
import { renew } from "../parts.ts";
import type { Delivery } from "../records.ts";
import { href } from "../router.ts";
import { listen } from "../stream.ts";
import type { EventOfOne } from "./inspector.ts";

/** Shows the events of a request and their deliveries, until all have ended. */
export async function follow(
  place: HTMLElement,
  request: string,
  over: AbortController,
): Promise<void> {
  const look = async () => {
    const { items } = await list<Pick<EventOfOne, "id">>("/backend/event", { request });
    const events = await Promise.all(items.map(({ id }) =>
      get<EventOfOne>(`/backend/event/${id}`)));
    if (over.signal.aborted) return;
    renew(place, events, () => [el("h3", "What it set off"), events.length === 0 ? "No event."
      : el("ol.line", events.map((event) => [
        step("ok", href("events", event.id), event.name, 0,
          `stored with the answer, for ${count(event.deliveries.length, "subscription")}`),
        event.deliveries.map((each) => deliveryStep(each, event)),
      ]))]);
    const all = events.flatMap((event) => [event, ...event.deliveries]);
    if (!all.some(({ status }) => status === "pending")) over.abort();
  };
  await look();
  const again = () => look().catch(() => {}); // the next event tries again
  listen({ topics: "delivery", request }, again, over.signal, again);
}

function deliveryStep(
  { id, subscription, status, last_status, last_error, finished_at, next_attempt_at }: Delivery,
  { created_at }: EventOfOne,
): Child {
  const got = last_status ?? last_error;
  return step(
    status === "delivered" ? "ok" : got ? "bad" : "",
    href("deliveries", id),
    endpoint(subscription),
    finished_at ? Date.parse(finished_at) - Date.parse(created_at) : undefined,
    [got, next_attempt_at ? `next attempt at ${time(next_attempt_at)}` : status]
      .filter(Boolean).join(" · "),
  );
}

function step(look: string, to: string, what: Child, ms: number | undefined, words: string) {
  return el("li", { class: look },
    el("div.spread", el("a", { href: to }, what),
      el("span.small.muted", ms === undefined ? "" : `+${duration(ms)}`)),
    el("span.small.muted", words));
}
