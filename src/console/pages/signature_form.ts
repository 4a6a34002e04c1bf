import { el, fill } from "../element.ts";
import { duration } from "../format.ts";
import { message } from "../parts.ts";
import { serverNow } from "../session.ts";

/** How old a callback may be when its receiver verifies it (Standard Webhooks). */
const TOLERANCE_MS = 300_000;
const FIELDS = ["webhook-id", "webhook-timestamp", "webhook-signature", "secret", "body"];

/** Checks a signature in the browser: nothing of it is sent anywhere. */
export function signatureForm(id: string): HTMLElement {
  const said = el("div", { role: "status" });
  const form = el("form", { onsubmit: submit },
    el("p.small.muted", "Nothing is sent: the check runs in this browser."),
    FIELDS.map((name) => el("div.field",
      el("label", { for: `check-${name}` }, name),
      el(name === "body" ? "textarea" : "input", {
        id: `check-${name}`,
        name,
        required: true,
        autocomplete: "off",
        rows: 4,
        value: name === "webhook-id" ? id : undefined,
      }))),
    el("p", el("button.btn", "Check")), said);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    const values = new FormData(form);
    const [sentId = "", seconds = "", signature = "", secret = "", body = ""] =
      FIELDS.map((name) => String(values.get(name)).replaceAll("\r\n", "\n"));
    const signed = `${sentId}.${seconds}.${body}`;
    const isRight = await verify(signed, signature, secret).catch(() => false);
    const ageMs = Math.abs(serverNow() - Number(seconds) * 1000);
    fill(said, !isRight ? message("bad", "Wrong. The body must be as it came, byte for byte.")
      : ageMs <= TOLERANCE_MS ? message("ok", "Right.")
      : message("warn", `Right, but too old: ${duration(ageMs)} from now; 5 min is the most.`));
  }
  return form;
}

/** Whether one of the signatures fits this text and secret; rejects if one is not Base64. */
async function verify(signed: string, signature: string, secret: string): Promise<boolean> {
  const bytes = (text: string) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const how = { name: "HMAC", hash: "SHA-256" };
  const raw = bytes(secret.trim().replace(/^whsec_/, ""));
  const key = await crypto.subtle.importKey("raw", raw, how, false, ["verify"]);
  const given = signature.trim().split(/\s+/).filter((each) => each.startsWith("v1,"));
  const found = await Promise.all(given.map((each) =>
    crypto.subtle.verify("HMAC", key, bytes(each.slice(3)), new TextEncoder().encode(signed))));
  return found.includes(true);
}
