import { el } from "./element.ts";

/** The names of series beside their colours. */
export function key(series: readonly Readonly<Record<"name" | "look", string>>[]): HTMLElement {
  return el("div", { class: "key" },
    series.map(({ name, look }) => el("span", { class: `k-${look}` }, name)));
}

/** One bar for each step of a health strip: its share of what went well, or nothing at all. */
export function strip(
  label: string,
  steps: readonly { readonly ok: number; readonly bad: number; readonly name?: string }[],
): HTMLElement {
  const look = ({ ok, bad }: { ok: number; bad: number }) =>
    ok + bad === 0 ? "n" : bad === 0 ? "" : ok > bad ? "w" : "b";
  return el("div", { class: "strip", role: "img", "aria-label": label }, steps.map((step) =>
    el("i", { class: look(step), title: `${step.name ?? ""} ${step.ok} ok, ${step.bad} failed` })));
}
