import { list, Refusal } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { address } from "./format.ts";
import { arrivals, href, pageOf } from "./router.ts";

/** A record of the server's, whose members are shown by what they look like. */
export type Thing = Readonly<Record<string, unknown>>;

/** Where those are that people know by a name. */
const NAMED: Readonly<Record<string, string>> = { u: "user", a: "app", i: "issuer", p: "resource" };
/** The members that have what people call it, the first of them that it has, or else its id. */
export const NAMES =
  ["username", "subject", "name", "issuer", "url", "endpoint", "id", "client_id", "kid"];
/** What has been found since the window came to its place; at another it is asked for anew. */
let [knownAt, known] = [0, new Map<string, Promise<string>>()];

/** The id of a record, whatever that is called. */
export const idOf = (item: Thing) => String(item["id"] ?? item["client_id"] ?? item["kid"]);

/** What people call it. */
export const nameOf = (item: Thing) =>
  String(NAMES.map((name) => item[name]).find((name) => name !== undefined));

/**
 * One of a list by its id; undefined where it is not there any more, or is no id. The list goes on
 * after the next id, since not each kind can be asked for alone, and what is gone is no error.
 */
export async function findIn(path: string, id: string): Promise<Thing | undefined> {
  const cursor = id.replace(/([^z])(z*)$/, (_, digit, rest) =>
    (parseInt(digit, 36) + 1).toString(36) + "0".repeat(rest.length));
  const { items: [item] } = await list<Thing>(`/backend/${path}`, { cursor, limit: 1 })
    .catch((error: unknown) => {
      if (error instanceof Refusal && error.status === 400) return { items: [] };
      throw error;
    });
  if (!item || idOf(item) !== id) return undefined;
  return item;
}

/** An id, and in its place the name of what has it, as it is shown, which is asked for once. */
function onceFound(id: string, path: string, show: (name: string) => Child) {
  const made = el("span", { title: id }, "…");
  if (knownAt !== arrivals) [knownAt, known] = [arrivals, new Map()];
  const found = known.get(id) ?? findIn(path, id).then((item) => item ? nameOf(item) : id);
  known.set(id, found);
  found.then((name) => fill(made, show(name)), () => {
    known.delete(id);
    fill(made, id);
  });
  return made;
}

/** An id, or the name of what has it. */
export function named(id: string): Child {
  const path = NAMED[id.charAt(0)];
  return path ? onceFound(id, path, (name) => name) : id;
}

/** The endpoint of a subscription. */
export const endpoint = (id: string): HTMLElement =>
  onceFound(id, "subscription", (found) => found === id ? id : endpointOf(found));

/** An endpoint with its host in front. */
export function endpointOf(url: string): Child {
  const [host, path] = address(url);
  return [host, el("wbr"), el("span.muted", path)];
}

/** The first cell of a list of subscriptions. */
export function eventAndEndpoint(
  { id, event, endpoint }: Readonly<Record<"id" | "event" | "endpoint", string>>,
): Child {
  const [host, path] = address(endpoint);
  return [el("a.main", { href: href("subscriptions", id) }, host),
    el("span.sub", el("code", event), ` · ${path}`)];
}

/** A text; a link where it is the id of something that has a page. */
export function linkTo(text: string, look?: string): Child {
  const page = pageOf(text);
  return page ? el("a", { href: href(page, text), class: look }, named(text)) : text;
}
