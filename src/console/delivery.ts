import { call } from "./api.ts";
import { ask } from "./dialog.ts";
import { el } from "./element.ts";
import { button } from "./parts.ts";
import type { Delivery } from "./records.ts";
import type { Wanted } from "./resend.ts";

/** How an attempt looks: whether its response accepted the callback. */
export const lookOf = (status = 0) => status >= 200 && status < 300 ? "ok" : "bad";

/** A button that sends a delivery again: one that did not fail only where that is ticked. */
export function sendAgain(
  path: string,
  { id, status }: Pick<Delivery, "id" | "status">,
  done: () => Promise<unknown>,
): HTMLButtonElement {
  const made = button("Send again…", async () => {
    const isDone = await ask({
      title: "Send this delivery again",
      words: "With the same webhook-id: who remembers ids does not take it twice.",
      body: status === "failed" ? null : el("label", { class: "pick" },
        el("input", { type: "checkbox", required: true }),
        el("span", {}, el("b", {}, `Although it was ${status}`))),
      action: "Send 1 again",
      act: () => call("POST", `${path}/${id}/resend`, { status }),
    });
    if (isDone) await done();
  }, { kind: "tiny", picture: "resend" });
  made.dataset["key"] = "r";
  return made;
}

/** Sends many again, by a dialog that is loaded when it is first wanted. */
export async function openResend(wanted: Wanted): Promise<void> {
  const dialog = await import("./resend.ts");
  await dialog.openResend(wanted);
}
