import { call } from "../api.ts";
import { ask, showOnce } from "../asking.ts";
import { code } from "../code.ts";
import { el } from "../element.ts";
import { field } from "../parts.ts";
import type { DeclaredEvent, Subscription } from "../records.ts";
import { go, href } from "../router.ts";
import { PATH } from "./subscription.ts";

const VERIFY = [
  'import { createHmac, timingSafeEqual } from "node:crypto";',
  "",
  "// body: its bytes as they came, before JSON.parse",
  "export function isGenuine(headers, body, secret) {",
  '  const key = Buffer.from(secret.replace("whsec_", ""), "base64");',
  '  const time = headers["webhook-timestamp"];',
  "  if (!(Math.abs(Date.now() / 1000 - time) < 300)) return false;",
  '  const own = createHmac("sha256", key)',
  '    .update(headers["webhook-id"] + "." + time + ".").update(body).digest();',
  '  return headers["webhook-signature"].split(" ").some((each) => {',
  '    const given = Buffer.from(each.slice(3), "base64");',
  "    return given.length === own.length && timingSafeEqual(given, own);",
  "  });",
  "}",
].join("\n");

/** Asks for the event and the endpoint of a new subscription, and shows its secret. */
export async function subscribe(events: readonly DeclaredEvent[], value: string): Promise<void> {
  const event = field("Event", { id: "event", list: "events", required: true, value });
  const endpoint = field("Your address", { type: "url", required: true, placeholder: "https://" });
  const body = () => ({ event: event.input.value, endpoint: endpoint.input.value });
  const made = await ask({
    title: "New webhook",
    words: "Every event of this name is sent to your address, as a signed POST.",
    body: [event.node, endpoint.node,
      el("datalist", { id: "events" }, events.map(({ name }) => el("option", { value: name })))],
    action: "Subscribe",
    act: () => call<Subscription & { secret: string }>("POST", PATH, body()),
  });
  if (!made) return;
  await showSecret(made.secret);
  go(href(made.id));
}

/** Shows a secret, which cannot be shown again, and how to use it. */
export const showSecret = (secret: string) => showOnce("Its signing secret",
  "It proves that a callback comes from here. Store it for your code: it is shown only once.",
  [code(secret), el("h3", "To verify a callback, in Node.js"), code(VERIFY)]);
