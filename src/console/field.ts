import { type Child, el } from "./element.ts";

/** A field of a window, and its input. */
export function field(label: Child, more: Parameters<typeof el>[1] = {}) {
  const input = el("input", { id: "field", autocomplete: "off", ...more });
  const node = el("div", { class: "field" }, el("label", { for: input.id }, label), input);
  return { node, input };
}
