import { el } from "./element.ts";

const SWITCH = "gatepost.keys";

/** Whether single letters do something in this browser (WCAG 2.1.4). */
export const hasLetters = () => localStorage.getItem(SWITCH) !== "off";

/** Switches them on and off. */
export function lettersSwitch(): HTMLElement {
  const change = (event: Event) =>
    localStorage.setItem(SWITCH, (event.target as HTMLInputElement).checked ? "on" : "off");
  const box = el("input", { type: "checkbox", checked: hasLetters(), onchange: change });
  return el("label", { class: "pick gap" }, box, "Keys of one letter do something; ? lists them");
}
