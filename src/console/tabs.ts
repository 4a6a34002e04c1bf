import { type Child, el, fill } from "./element.ts";

/** Tabs of a card, of which one is seen; the arrow keys move between them. */
export function tabs(panels: readonly (readonly [name: string, panel: () => Child])[]) {
  const body = el("div", { class: "body panel", role: "tabpanel", tabindex: 0 });
  const choose = (at: number) => {
    buttons.forEach((each, index) => {
      each.setAttribute("aria-selected", String(index === at));
      each.tabIndex = index === at ? 0 : -1;
    });
    body.setAttribute("aria-label", panels[at]?.[0] ?? "");
    fill(body, panels[at]?.[1]());
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = buttons.findIndex((each) => each === document.activeElement) + step;
    const next = (at + buttons.length) % buttons.length;
    choose(next);
    buttons[next]?.focus();
  };
  const buttons = panels.map(([name], at) =>
    el("button", { role: "tab", onclick: () => choose(at), onkeydown: move }, name));
  choose(0);
  return [el("div", { class: "tabs", role: "tablist" }, buttons), body];
}
