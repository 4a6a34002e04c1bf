import { call } from "./api.ts";
import { asking } from "./asking.ts";
import { type Child, el } from "./element.ts";
import { ago, duration } from "./format.ts";
import { when } from "./parts.ts";
import type { Attempted, Delivery } from "./records.ts";
import type { Wanted } from "./resend.ts";

/** How an attempt looks: whether its response accepted the callback. */
export const lookOf = (status = 0) => status >= 200 && status < 300 ? "ok" : "bad";

/** How long it is between two times. */
export const between = (from: string, to: string) => duration(Date.parse(to) - Date.parse(from));

/** What happened to a delivery, and when. */
export const entry = (name: string, at: string) => el("div", { class: "spread" }, el("b", {}, name),
  el("span", { class: "muted small" }, when(at, true)));

/** The attempts, the last one first. */
export function attemptsOf(
  { attempts, next_attempt_at: next }: Pick<Attempted, "attempts" | "next_attempt_at">,
): Child {
  return [
    next && el("li", { class: "warn" }, entry("Next attempt", next),
      el("span", { class: "muted small" }, ago(next))),
    attempts.map(({ time, attempt, status, error, duration_ms, snippet }, at) => {
      const before = attempts[at - 1];
      const how = attempt > 1 ? "resent" : "sent again by hand";
      return el("li", { class: lookOf(status) },
        entry(`Attempt ${attempt} · ${status ?? error}`, time),
        el("span", { class: "muted small" }, duration(duration_ms),
          before ? ` · ${how} after ${between(before.time, time)}` : null),
        snippet ? el("details", { open: at === attempts.length - 1 },
          el("summary", {}, "How the response began"),
          el("pre", { class: "wrap", tabindex: 0 }, snippet)) : null);
    }).reverse(),
  ];
}

/**
 * A button that sends a delivery again, or at once where it waits for that: one that has ended and
 * did not fail only where that is ticked, and none that is being sent.
 */
export function sendAgain(
  path: string,
  { id, status, next_attempt_at: next }: Pick<Delivery, "id" | "status" | "next_attempt_at">,
  done: () => Promise<unknown>,
): Child {
  const isWaiting = status === "pending";
  if (isWaiting && !next) return null;
  const when = isWaiting ? "now" : "again";
  return asking(`Send ${when}`, id,
    "With the same webhook-id: who remembers ids does not take it twice.",
    () => call("POST", `${path}/${id}/resend`, { status }), {
      body: isWaiting || status === "failed" ? null : el("label", { class: "pick" },
        el("input", { type: "checkbox", required: true }),
        el("span", {}, el("b", {}, `Although it was ${status}`))),
      title: `Send this delivery ${when}`,
      action: `Send 1 ${when}`,
      look: { kind: "tiny", picture: "resend", key: "r" },
      after: done,
    });
}

/** Sends many again, by a dialog that is loaded when it is first wanted. */
export const openResend = async (wanted: Wanted) =>
  (await import("./resend.ts")).openResend(wanted);
