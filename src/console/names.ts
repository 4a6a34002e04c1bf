import { list, Refusal } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { href, pageOf } from "./router.ts";

/** A record of the server's, whose members are shown by what they look like. */
export type Thing = Readonly<Record<string, unknown>>;

/** Where those are that people know by a name. */
const NAMED: Readonly<Record<string, string>> = { u: "user", a: "app", i: "issuer", p: "resource" };
/** The members that have what people call it, the first of them that it has, or else its id. */
export const NAMES = ["username", "subject", "name", "issuer", "url", "id", "client_id", "kid"];
const names = new Map<string, Promise<string>>();

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
  names.set(id, Promise.resolve(nameOf(item)));
  return item;
}

/** An id, and in its place the name of what has it once that is known. */
export function named(id: string): HTMLElement {
  const made = el("span", { title: id }, id);
  const path = NAMED[id.charAt(0)];
  if (!path) return made;
  const found = names.get(id) ?? findIn(path, id).then((item) => item ? nameOf(item) : id);
  names.set(id, found);
  found.then((name) => fill(made, name), () => names.delete(id));
  return made;
}

/** A text; a link where it is the id of something that has a page. */
export function linkTo(text: string, look?: string): Child {
  const page = pageOf(text);
  return page ? el("a", { href: href(page, text), class: look }, named(text)) : text;
}
