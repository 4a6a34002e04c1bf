import { el, icon } from "./element.ts";
import { go, here, href, pageOf, refine } from "./router.ts";
import { serverNow } from "./session.ts";

const PARAMETER = /^(-?\w+):\s*(.+)$/;

/**
 * A search field for filters of the form `name:value`, each of which becomes a chip with a button
 * that removes it. Other text becomes `q` if that is one of the names, and an id opens its page.
 */
export function filters(names: readonly string[], hint?: string) {
  const { query } = here();
  const chips = names.filter((name) => query.get(name)).map((name) =>
    el("span.token", el("b", `${name}: `), query.get(name),
      el("button", {
        type: "button", "aria-label": `Without ${name}`, onclick: () => refine({ [name]: "" }),
      }, "×")));
  const field = el("input", {
    type: "search", name: "filter", list: "filters", autocomplete: "off",
    placeholder: hint ?? `${names.join(": ")}: or any id`,
    "aria-label": hint ?? `Filter by ${names.join(", ")}`,
  });
  const submit = (event: Event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (text === "") return;
    const page = pageOf(text);
    if (page) return go(href(page, text));
    const changes = text.split(RegExp(`\\s+(?=(?:${names.join("|")}):)`)).map((part) => {
      const [, name = "", value = ""] = PARAMETER.exec(part) ?? [];
      return names.includes(name) ? [name, value] as const : ["q", part] as const;
    });
    if (changes.every(([name]) => names.includes(name))) return refine(Object.fromEntries(changes));
    field.setCustomValidity(`Filters here: ${names.join(", ")}`);
    field.reportValidity();
  };
  field.addEventListener("input", () => field.setCustomValidity(""));
  return el("form.search", { role: "search", onsubmit: submit }, icon("search"), chips,
    field,
    el("datalist", { id: "filters" }, names.map((name) => el("option", { value: `${name}:` }))));
}

/** The text of a list that is empty because of its filters. */
export const noneLike = (what: string) =>
  `No ${what} matches these filters. Remove one to see others.`;

const SPAN = /^(\d+)(m|h|d|w)$/;
const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Returns the time that a filter names: `24h` is that long ago, a day or a time is local. */
export function since(text: string | null): string | undefined {
  const [, many, unit] = SPAN.exec(text ?? "") ?? [];
  if (!many) {
    const at = new Date(text?.replace(/^\d+-\d+-\d+$/, "$& 00:00") ?? "");
    return /^\d{4}-/.test(text ?? "") && Number(at) ? at.toISOString() : text ?? undefined;
  }
  const agoMs = Number(many) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return new Date(Math.max(0, serverNow() - agoMs)).toISOString();
}
