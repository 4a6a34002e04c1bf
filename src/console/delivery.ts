import { call, get } from "./api.ts";
import { asking } from "./asking.ts";
import { type Child, el } from "./element.ts";
import { ago, count, duration } from "./format.ts";
import { renew, state, when } from "./parts.ts";
import type { Attempted, Delivery } from "./records.ts";
import type { Wanted } from "./resend.ts";
import { arrivals } from "./router.ts";

/** The members of a delivery that the console and a user's own pages share. */
type Sent = Attempted<Omit<Delivery, "event" | "name">>;

/** Returns `ok` if the status of the response accepts the callback, else `bad`. */
export const lookOf = (status = 0) => status >= 200 && status < 300 ? "ok" : "bad";

/** How long it is between two times. */
const between = (from: string, to: string) => duration(Date.parse(to) - Date.parse(from));

/** What happened to a delivery, and when. */
export const entry = (name: string, at: string) =>
  el("div.spread", el("b", name), el("span.muted.small", when(at, true)));

/**
 * Shows one delivery: its status, the button that sends it again, and its attempts, newest first,
 * with `first` below them. `refresh` reads the delivery again and renders what has changed.
 */
export async function openDelivery<Of extends Sent>(
  path: string,
  id: string,
  first?: Child,
) {
  const [status, again] = [el("span", { role: "status" }), el("span")];
  const line = el("ol.line");
  let now: Of;
  async function refresh(): Promise<void> {
    now = await get<Of>(`${path}/${id}`);
    renew(status, now, () => [state(now.status), el("span.muted", howLong(now))]);
    renew(again, now, () => sendAgain(path, now, refresh));
    renew(line, now, () => [attemptsOf(now), first]);
  }
  await refresh();
  return { now: () => now, refresh, status, again, line };
}

function howLong({ attempt, created_at, finished_at }: Sent): string {
  const took = finished_at ? ` in ${between(created_at, finished_at)}` : "";
  return attempt > 0 ? ` after ${count(attempt, "attempt")}${took}` : "";
}

function attemptsOf({ attempts, next_attempt_at: next }: Sent): Child {
  return [
    next && el("li.warn", entry("Next attempt", next), el("span.muted.small", ago(next))),
    attempts.map(({ time, attempt, status, error, duration_ms, snippet }, at) => {
      const before = attempts[at - 1];
      const how = attempt > 1 ? "resent" : "sent again by hand";
      return el("li", { class: lookOf(status) },
        entry(`Attempt ${attempt} · ${status ?? error}`, time),
        el("span.muted.small", duration(duration_ms),
          before && ` · ${how} after ${between(before.time, time)}`),
        snippet && el("details", { open: at === attempts.length - 1 },
          el("summary", status ? "How the response began" : "The code of the error"),
          el("pre.wrap", { tabindex: 0 }, snippet)));
    }).reverse(),
  ];
}

/**
 * A button that sends a delivery again, or sends a waiting one at once. If the delivery has ended
 * and did not fail, a box must be ticked first. While an attempt runs there is no button.
 */
function sendAgain(
  path: string,
  { id, status, next_attempt_at: next }: Sent,
  after: () => Promise<void>,
): Child {
  const isWaiting = status === "pending";
  if (isWaiting && !next) return null;
  const when = isWaiting ? "now" : "again";
  return asking(`Send ${when}`, id,
    "It keeps its webhook-id, so the receiver can recognize a duplicate.",
    () => call("POST", `${path}/${id}/resend`, { status }), {
      body: !isWaiting && status !== "failed" && el("label.pick",
        el("input", { type: "checkbox", required: true }),
        el("span", el("b", `Yes, although it was ${status}`))),
      title: `Send this delivery ${when}`,
      action: `Send 1 ${when}`,
      look: { kind: "tiny", picture: "resend", key: "r" },
      after,
    });
}

/** Opens the dialog that sends many deliveries again, whose code is loaded when first needed. */
export async function openResend(wanted: Wanted): Promise<void> {
  const came = arrivals;
  const { openResend } = await import("./resend.ts");
  return openResend(wanted, came);
}
