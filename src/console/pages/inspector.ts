import type { EventWithDeliveries } from "../../api/backend/event.ts";
import type { Infer } from "../../base/shape.ts";
import { code, copy } from "../code.ts";
import { type Child, el } from "../element.ts";
import { facts, state, when } from "../parts.ts";
import type { Delivery } from "../records.ts";
import { here, href, type Place } from "../router.ts";
import { type Column, later } from "../table.ts";
import { cut } from "../tabs.ts";

/** How many characters of a payload are shown at first. */
const PAYLOAD_SHOWN = 65_536;

/** An event with its data, and the first of its deliveries. */
export type EventOfOne = Infer<typeof EventWithDeliveries>;

let kept:
  | { address: string; over: AbortController } & Record<"node" | "list" | "split", HTMLElement>
  | undefined;

/** The address of this list without the item that is open. */
const listAddress = (): string => href(here().page, "", Object.fromEntries(here().query));

/**
 * Shows a list with one of its items beside it, or in its place on small screens. The list stays as
 * it is while the user opens one item after the other.
 */
export async function besideList(
  { id, signal }: Place,
  /** Makes a list, which gets new items until the signal aborts. */
  parts: (signal: AbortSignal) =>
    Promise<{ readonly head: Child; readonly above: Child; readonly list: HTMLElement }>,
  one: (id: string) => Promise<Child>,
): Promise<Child> {
  const address = listAddress();
  if (kept?.address !== address || !kept.node.isConnected) {
    kept?.over.abort();
    const over = new AbortController();
    const { head, above, list } = await parts(over.signal);
    if (signal.aborted) {
      over.abort();
      return null; // another list may be kept already
    }
    const pane = (...held: Child[]) => el("div.list-pane", held);
    const split = el("div", pane(above, el("section.card", list)));
    kept = { address, over, list, split, node: el("div", pane(head), split) };
  }
  const { node, list, split, over } = kept;
  signal.addEventListener("abort", () => {
    if (listAddress() === address) return;
    over.abort();
    kept = undefined;
  });
  split.className = id ? "split" : "";
  const closed = split.querySelector(".insp");
  const hadFocus = closed?.contains(document.activeElement);
  closed?.remove();
  for (const row of list.querySelectorAll("tr")) {
    // The focus returns to the row of the item that was closed.
    const isLeft = !id && hadFocus && row.ariaSelected === "true";
    row.ariaSelected = String(row.dataset["id"] === id);
    if (isLeft) row.querySelector<HTMLElement>("a.main")?.focus();
  }
  if (!id) return node;
  const comes = one(id);
  split.append(el("section.card.insp", { "aria-label": "Details" }, later(comes)));
  comes.then(() => setTimeout(() => {
    // A hidden list cannot keep the focus, so the heading of the item gets it.
    if (list.offsetParent === null) split.querySelector<HTMLElement>(".insp h2")?.focus();
  }), () => {});
  return node;
}

/** The part above the tabs of one item: its name, actions, status and facts. */
export function aboveTabs(
  name: string,
  actions: Child,
  status: Child,
  pairs: Parameters<typeof facts>[0],
): Child {
  return [
    el("header.spread.body", el("h2", { tabindex: -1 }, el("code", name)),
      el("div.row", actions,
        el("a.btn.tiny.quiet", { href: listAddress(), "aria-label": "Back" }, "×"))),
    el("div.body", el("p.row.small", status), facts(pairs)),
  ];
}

/** An id that can be copied. */
export function copied(id: string): Child {
  const made = copy(id, "");
  made.ariaLabel = "Copy the id";
  return [el("code", id), " ", made];
}

/** An id as a link. */
export const linked = (id: string, to: string) => el("a", { href: to }, el("code", id));

/** The id of a request, as a link to the events that the request set off. */
export const requested = (request: string) => linked(request, href("events", "", { request }));

/** The status of a delivery, with its last response if there is one. */
export function answered({ status, last_status, last_error }: Delivery): Child {
  const answer = last_status ?? last_error;
  if (status === "delivered" || status === "failed") return state(status, answer);
  return [state(status), answer && el("span.sub", `after ${answer}`)];
}

/** Any JSON as text. */
export const payload = (data: unknown) => cut(JSON.stringify(data, null, 2), PAYLOAD_SHOWN, code);

/** The column with the time of the dispatch, which the lists share. */
export const DISPATCHED: Column<{ readonly created_at: string }> =
  ["Dispatched", "mono muted nowrap hide-s", ({ created_at }) => when(created_at)];
