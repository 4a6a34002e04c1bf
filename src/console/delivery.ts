import { call } from "./api.ts";
import { asking } from "./asking.ts";
import { type Child, el } from "./element.ts";
import type { Delivery } from "./records.ts";
import type { Wanted } from "./resend.ts";

/** How an attempt looks: whether its response accepted the callback. */
export const lookOf = (status = 0) => status >= 200 && status < 300 ? "ok" : "bad";

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
  return asking(`Send ${when}`, "1 delivery",
    "With the same webhook-id: who remembers ids does not take it twice.",
    () => call("POST", `${path}/${id}/resend`, { status }), {
      body: isWaiting || status === "failed" ? null : el("label", { class: "pick" },
        el("input", { type: "checkbox", required: true }),
        el("span", {}, el("b", {}, `Although it was ${status}`))),
      action: `Send 1 ${when}`,
      look: { kind: "tiny", picture: "resend", key: "r" },
      after: done,
    });
}

/** Sends many again, by a dialog that is loaded when it is first wanted. */
export async function openResend(wanted: Wanted): Promise<void> {
  const dialog = await import("./resend.ts");
  await dialog.openResend(wanted);
}
