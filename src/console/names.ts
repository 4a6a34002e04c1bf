import { list, Refusal } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { address } from "./format.ts";
import { arrivals, href, pageOf } from "./router.ts";

/** A record of the server; how a member is shown depends on its name and value. */
export type Thing = Readonly<Record<string, unknown>>;

/** The paths of the records that have a name, by the first letter of their ids. */
const NAMED: Readonly<Record<string, string>> = { u: "user", a: "app", i: "issuer", p: "resource" };
/** The members that may hold the name of a record. The first that a record has is its name. */
export const NAMES =
  ["username", "subject", "name", "issuer", "url", "endpoint", "id", "client_id", "kid"];
/** The names found since the window came to its page; they are asked for anew on the next page. */
let [knownAt, known] = [0, new Map<string, Promise<string>>()];

/** The id of a record, whichever member holds it. */
export const idOf = (item: Thing) => String(item["id"] ?? item["client_id"] ?? item["kid"]);

/** The name of a record. */
export const nameOf = (item: Thing) =>
  String(NAMES.map((name) => item[name]).find((name) => name !== undefined));

/**
 * Finds a record by its id; undefined if there is none. It reads the list after the next higher id:
 * not every kind can be read by id, and a missing record is no error.
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

/** Shows the name of the record with this id, or the id if it has none. A name is read once. */
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

/** The name of the record with this id, or the id if the record has no name. */
export function named(id: string): Child {
  const path = NAMED[id.charAt(0)];
  return path ? onceFound(id, path, (name) => name) : id;
}

/** The endpoint of a subscription. */
export const endpoint = (id: string): HTMLElement =>
  onceFound(id, "subscription", (found) => found === id ? id : endpointOf(found));

/** The host of an endpoint, then its path. */
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

/** The text, as a link if it is the id of a record that has a page. */
export function linkTo(text: string, look?: string): Child {
  const page = pageOf(text);
  return page ? el("a", { href: href(page, text), class: look }, named(text)) : text;
}
