import { get } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { address } from "./format.ts";
import { href } from "./router.ts";

const known = new Map<string, Promise<string>>();

/** An endpoint with its host in front. */
export function endpointOf(url: string): Child {
  const [host, path] = address(url);
  return [host, el("wbr"), el("span", { class: "muted" }, path)];
}

/** The endpoint of a subscription, once it is known; it is asked for once. */
export function endpoint(subscription: string): HTMLElement {
  const node = el("span", {}, "…");
  const comes = known.get(subscription) ?? get<{ endpoint: string }>(
    `/backend/subscription/${subscription}`).then((found) => found.endpoint);
  known.set(subscription, comes);
  comes.then((url) => fill(node, endpointOf(url)), () => {
    known.delete(subscription);
    fill(node, subscription);
  });
  return node;
}

/** The first cell of a list of subscriptions. */
export function eventAndEndpoint(
  { id, event, endpoint }: Readonly<Record<"id" | "event" | "endpoint", string>>,
): Child {
  const [host, path] = address(endpoint);
  return [el("a", { class: "main", href: href("subscriptions", id) }, host),
    el("span", { class: "sub" }, el("code", {}, event), ` · ${path}`)];
}
