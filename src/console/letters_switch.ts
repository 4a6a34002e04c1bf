import { el } from "./element.ts";
import { hasLetters, LETTERS } from "./parts.ts";

/** A checkbox that switches the keys of a single letter on and off. */
export function lettersSwitch(): HTMLElement {
  const change = (event: Event) =>
    localStorage.setItem(LETTERS, (event.target as HTMLInputElement).checked ? "on" : "off");
  const box = el("input", { type: "checkbox", checked: hasLetters(), onchange: change });
  return el("label.pick.gap", box, "Single-letter keyboard shortcuts; ? lists them");
}
