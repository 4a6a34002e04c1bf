import { type Child, el, fill } from "./element.ts";
import { number } from "./format.ts";
import { button } from "./parts.ts";

/** The tabs of a card, with one panel visible; the arrow keys move between them. */
export function tabs(panels: readonly (readonly [name: string, panel: () => Child])[]) {
  const body = el("div.body.panel", { role: "tabpanel", tabindex: 0 });
  const choose = (at: number) => {
    buttons.forEach((each, index) => {
      each.ariaSelected = String(index === at);
      each.tabIndex = index === at ? 0 : -1;
    });
    body.ariaLabel = panels[at]?.[0] ?? "";
    fill(body, panels[at]?.[1]());
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = buttons.indexOf(event.target as HTMLButtonElement) + step;
    const next = (at + buttons.length) % buttons.length;
    choose(next);
    buttons[next]?.focus();
  };
  const buttons = panels.map(([name], at) =>
    el("button", { role: "tab", onclick: () => choose(at), onkeydown: move }, name));
  choose(0);
  return [el("div.tabs", { role: "tablist" }, buttons), body];
}

/** A text that may be very long: its first characters, and a button that shows all. */
export function cut(text: string, most: number, show: (text: string) => Child): HTMLElement {
  const node = el("div.payload", show(text.slice(0, most)));
  const all = () => {
    fill(node, show(text));
    node.querySelector("pre")?.focus(); // the button is gone
  };
  if (text.length > most) {
    node.append(button(`Show all ${number(text.length)} characters`, all, { kind: "tiny" }));
  }
  return node;
}
