import { el, fill } from "./element.ts";
import { endpoint } from "./names.ts";
import { rate } from "./format.ts";
import { card, state, when } from "./parts.ts";
import type { Delivery } from "./records.ts";
import { href } from "./router.ts";
import { every } from "./stream.ts";
import { type Column, MOST_ROWS, table } from "./table.ts";

/** The rate is the average of this many seconds. */
const PACE_S = 5;

/** Shows deliveries as they happen. No other part of the page moves, and the user can hold it. */
export function showTail(latest: readonly Delivery[], signal: AbortSignal) {
  const columns: readonly Column<Delivery>[] = [
    ["Dispatched", "hide-s mono muted", ({ created_at }) => when(created_at, true)],
    ["Event", "", ({ id, name }) => el("a.main.mono", { href: href("deliveries", id) }, name)],
    ["Outcome", "", ({ status, attempt }) =>
      status === "pending" && attempt > 0 ? state(status, "Resend due") : state(status)],
    ["Endpoint", "wide", ({ subscription }) => endpoint(subscription)],
    ["Answer", "num mono hide-s", ({ last_status, last_error }) =>
      last_status ?? last_error ?? "–"],
    ["Attempt", "num muted hide-s", ({ attempt }) => attempt],
  ];
  const shown = table(columns, latest);
  const pace = el("span.small.muted");
  let isHeld = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let [come, dropped] = [0, 0];
  let waiting: Delivery[] = [];
  const hold = el("button.btn.tiny", {
    onclick() {
      isHeld = !isHeld;
      settle();
    },
  });

  function settle(): void {
    fill(hold, isHeld ? `Resume: ${waiting.length} new` : "Hold");
    const [body] = shown.tBodies;
    if (isHeld || !body || shown.matches(":hover, :focus-within")) return;
    body.prepend(...table(columns, waiting.splice(0)).querySelectorAll("tbody tr"));
    while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
  }

  settle();
  every(PACE_S * 1000, () => {
    const all = come + dropped;
    fill(pace, `${rate(all / PACE_S)} a second`,
      dropped > 0 && come > 0 && `, 1 of ${Math.round(all / come)} shown`);
    come = dropped = 0;
    settle();
  }, signal);
  return {
    node: card("Right now", { padded: false, end: el("div.row", pace, hold) }, shown,
      el("p.muted.wait", "Each delivery is shown here when it happens.")),
    tell(topic: string, data: unknown): void {
      const one = data as Delivery & { readonly count: number };
      if (topic === "dropped") {
        dropped += one.count;
        return;
      }
      come++;
      // The first deliveries of the stream may be in the list already.
      if (latest.some(({ id, attempt }) => id === one.id && attempt === one.attempt)) return;
      waiting = [one, ...waiting].slice(0, MOST_ROWS);
      settle();
    },
  };
}
