import type { Infer } from "../../base/shape.ts";
import type { AttemptRecord } from "../../event/delivery_record.ts";
import { call, get, list } from "../api.ts";
import { ask } from "../dialog.ts";
import { type Child, el, fill } from "../element.ts";
import { count, duration, number } from "../format.ts";
import {
  aboveTabs, answered, besideList, copied, type Delivery, DISPATCHED, endpoint, type EventOfOne,
  payload, who,
} from "../inspector.ts";
import type { Page } from "../pages.ts";
import { button, facts, filters, head, segments, since, state, tabs, when } from "../parts.ts";
import { openResend } from "../resend.ts";
import { href } from "../router.ts";
import { mayWrite } from "../session.ts";
import { signatureForm } from "../signature_form.ts";
import { listen } from "../stream.ts";
import { listTable } from "../table.ts";

type Attempt = Infer<typeof AttemptRecord> & { readonly snippet?: string };
type WithAttempts = Delivery & { readonly attempts: readonly Attempt[] };
type Selection = Readonly<Record<string, string | undefined>>;

const PATH = "/backend/delivery";
const NAMES = ["since", "until", "endpoint", "event", "answer", "attempt", "subscription", "name"];

/** What the address asks for: an event may be named there by its id or its name. */
function selectionOf(query: URLSearchParams): Selection {
  const { event, ...given } = Object.fromEntries(query);
  const named = event ? { [/^e0\w{9,}$/.test(event) ? "event" : "name"]: event } : {};
  return { ...given, ...named, since: since(query.get("since")), until: since(query.get("until")) };
}

/** Whether a delivery that has just changed is one of the list: that is for the server to say. */
async function isMeant({ id, event, status }: Delivery, selection: Selection): Promise<boolean> {
  if (selection["status"] && selection["status"] !== status) return false;
  if (selection["event"] && selection["event"] !== event) return false;
  return (await list<Delivery>(PATH, { ...selection, event })).items.some((item) => item.id === id);
}

/** Puts an item into the list that is shown. */
let add: (item: Delivery) => void = () => {};
const live = el("span", { class: "live", hidden: true }, el("i"), "Live");

async function showList(query: URLSearchParams) {
  const selection = selectionOf(query);
  const status = selection["status"] || "failed";
  const made = await listTable<Delivery>({
    path: PATH,
    query: selection,
    columns: [
      DISPATCHED,
      {
        name: "Event → endpoint",
        cell: ({ id, name, created_at, subscription }) => [
          el("a", { class: "main", href: href("deliveries", id, Object.fromEntries(query)) },
            endpoint(subscription)),
          el("span", { class: "sub" }, el("code", {}, name),
            el("span", { class: "only-s" }, " · ", when(created_at))),
        ],
      },
      { name: "Last answer", cell: answered },
      { name: "Attempts", class: "num muted hide-s", cell: ({ attempt }) => attempt },
    ],
    empty: query.size > 0 ? "No delivery is like this. Take a filter away to see others."
      : "No delivery yet: an event makes one for each of its subscriptions.",
  });
  add = async (item) => {
    const ids = [...made.node.querySelectorAll("[data-id]")].map((row) => row.getAttribute("data-id"));
    const isNew = selection["status"] || item.id > (ids[0] ?? "");
    if (ids.includes(item.id) || (isNew && await isMeant(item, selection))) made.add(item);
  };
  const many = el("span", {}, "Send again…");
  const failed = el("span", { class: "muted" });
  const { subscription } = selection;
  const again = () => void openResend({ subscription, selection: { ...selection, status } });
  const all = button(many, again, { picture: "resend" });
  // Of those that were delivered there may be very many; whoever asks has them counted then.
  if (mayWrite() && /failed|cancelled/.test(status)) {
    const { attempt } = selection;
    const what = { ...selection, status, attempt: attempt && Number(attempt), dry_run: true };
    call<{ count: number }>("POST", `${PATH}/resend`, what).then((found) => {
      fill(many, `Send ${number(found.count)} again…`);
      if (status === "failed") fill(failed, number(found.count, true));
      all.disabled = found.count === 0;
    }, () => {});
  }
  return {
    head: head("Deliveries", ["One event for one subscription, with each attempt to send it. ", live],
      mayWrite() && status !== "pending" ? all : null),
    above: [filters(NAMES), segments("status", [["", "All"], ["failed", ["Failed ", failed]],
      ["pending", "Waiting"], ["delivered", "Delivered"], ["cancelled", "Cancelled"]])],
    list: made.node,
  };
}

async function showOne(id: string, watch: (refresh: () => Promise<void>) => void): Promise<Child> {
  const read = () => get<WithAttempts>(`${PATH}/${id}`);
  const delivery = await read();
  const event = await get<EventOfOne>(`/backend/event/${delivery.event}`, { limit: 1 });
  const [status, again, line] = [el("span"), el("span"), el("ol", { class: "line" })];
  const draw = (now: WithAttempts) => {
    fill(status, state(now.status), el("span", { class: "muted" }, ` ${howLong(now)}`));
    fill(again, mayWrite() && now.status !== "pending" ? sendAgain(now, refresh) : null);
    fill(line, attemptsOf(now), el("li", { class: "ok" },
      entry("Dispatched", event.created_at), el("span", { class: "muted small" },
        event.source ? ["in ", el("code", {}, event.source)] : "by the service itself",
        event.request ? [" · request ",
          el("a", { href: href("events", "", { request: event.request }) },
            el("code", {}, event.request))] : null)));
  };
  const refresh = async () => draw(await read());
  watch(refresh);
  draw(delivery);
  const { attempts } = delivery;
  return [
    aboveTabs(delivery.name, again, status, [
      ["webhook-id", copied(id)],
      ["Event", [el("a", { href: href("events", event.id) }, el("code", {}, event.id)),
        event.principal ? [" by ", who(event.principal)] : null]],
      ["Endpoint", el("a", { href: href("subscriptions", delivery.subscription) },
        endpoint(delivery.subscription))],
    ]),
    tabs([
      ["Attempts", () => line],
      ["Payload", () => payload(event.data)],
      ["Headers", () => facts([
        ["content-type", "application/json"],
        ["webhook-id", id],
        ["webhook-timestamp", "when the attempt began, in seconds since 1970"],
        ["webhook-signature", "v1, and an HMAC-SHA-256 by each secret that is valid then"],
        ["gatepost-event", delivery.name],
        ["gatepost-attempt", String(attempts.at(-1)?.attempt ?? 1)],
      ])],
      ["Check a signature", () => signatureForm(id)],
    ]),
  ];
}

function howLong({ attempt, status, created_at, finished_at, next_attempt_at }: Delivery): string {
  const tries = attempt > 0 ? `after ${count(attempt, "attempt")}` : "";
  const took = finished_at ? ` in ${duration(Date.parse(finished_at) - Date.parse(created_at))}` : "";
  return tries + took + (status === "pending" && !next_attempt_at ? " being sent" : "");
}

const entry = (name: string, at: string) => el("div", { class: "spread" }, el("b", {}, name),
  el("span", { class: "muted small" }, when(at, true)));

/** The attempts, the last one first. */
function attemptsOf({ attempts, next_attempt_at }: WithAttempts): Child {
  const next = next_attempt_at ? el("li", { class: "warn" }, entry("Next attempt", next_attempt_at)) : null;
  return [next, attempts.map(({ time, attempt, status, error, duration_ms, snippet }, at) => {
    const before = attempts[at - 1];
    const waited = before ? duration(Date.parse(time) - Date.parse(before.time)) : "";
    return el("li", { class: status && status >= 200 && status < 300 ? "ok" : "bad" },
      entry(`Attempt ${attempt} · ${status ?? error}`, time),
      el("span", { class: "muted small" }, duration(duration_ms), !before ? null
        : attempt > 1 ? ` · resent after ${waited}` : ` · sent again by hand after ${waited}`),
      snippet ? el("details", { open: at === attempts.length - 1 },
        el("summary", {}, "How the response began"), el("pre", { class: "wrap", tabindex: 0 }, snippet)) : null);
  }).reverse()];
}

function sendAgain({ id, status }: Delivery, refresh: () => Promise<void>): Child {
  const made = button("Send again", async () => {
    const isDone = await ask({
      title: "Send this delivery again",
      words: "It gets a fresh budget of attempts and keeps its webhook-id: who remembers ids takes it for the same.",
      body: status === "failed" ? null : el("label", { class: "pick" },
        el("input", { type: "checkbox", required: true }),
        el("span", {}, el("b", {}, `Although it was ${status}`))),
      action: "Send 1 again",
      act: () => call("POST", `${PATH}/${id}/resend`, { status }),
    });
    if (isDone) await refresh();
  }, { kind: "tiny", picture: "resend" });
  made.dataset["key"] = "r";
  return made;
}

export const page: Page = {
  title: "Deliveries",
  show(place) {
    let refresh = () => Promise.resolve();
    listen({ topics: "delivery" }, {
      tell(topic, data) {
        const { id } = data as Delivery;
        if (topic === "delivery") add(data as Delivery);
        // Of very many the stream tells a sample.
        if (topic === "dropped" || id === place.id) refresh().catch(() => {});
      },
      state: (isLive) => live.hidden = !isLive,
    }, place.signal);
    return besideList(place, () => showList(place.query),
      (id) => showOne(id, (reads) => refresh = reads));
  },
};
