import { type Child, el } from "./element.ts";
import { ago } from "./format.ts";
import { endpointOf, idOf, linkTo, named, type Thing } from "./names.ts";
import { state, when } from "./parts.ts";
import { href, pageOf } from "./router.ts";
import { mayWrite } from "./session.ts";
import type { Column } from "./table.ts";

const TIME = /^\d{4}-\d\d-\d\dT/;

/** What a member holds; `isPlain`: without a link of its own. */
export function valueOf(name: string, value: unknown, isPlain = false): Child {
  if (value === null || value === undefined || value === false) return null;
  if (value === true) return "Yes";
  if (Array.isArray(value)) return value.join(" ");
  if (typeof value === "object") return el("code", {}, JSON.stringify(value));
  const text = String(value);
  if (name === "status") return state(text);
  if (name === "error") return el("span", { class: "down" }, text);
  if (name === "created_at") {
    return [when(text), el("span", { class: "small muted" }, ` ${ago(text)}`)];
  }
  if (name === "endpoint") return endpointOf(text);
  if (TIME.test(text)) return when(text);
  return isPlain && pageOf(text) ? named(text) : linkTo(text);
}

/** A member's name for people. */
export const wordsOf = (name: string) =>
  (name.charAt(0).toUpperCase() + name.slice(1).replace(/_at$/, "").replaceAll("_", " "))
    .replace(/\buri/, "URI").replace(/^Url\b/, "URL");

/**
 * Columns of these members; the first is the link to the item's page, if there is one. On small
 * screens the third and those after it have a line of their own, with their name.
 */
export function columnsOf(
  members: readonly string[],
  act?: (item: Thing) => Child,
): Column<Thing>[] {
  const columns = members.map((name, at): Column<Thing> => {
    return [wordsOf(name), name === "value" ? "wide" : at > 1 ? "wide named" : "", (item) => {
      const page = at === 0 ? pageOf(idOf(item)) : undefined;
      const value = valueOf(name, item[name], Boolean(page)) ?? "–";
      return page ? el("a", { class: "main", href: href(page, idOf(item)) }, value) : value;
    }];
  });
  return act && mayWrite() ? [...columns, ["", "act", act]] : columns;
}
