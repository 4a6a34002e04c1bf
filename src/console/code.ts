import { el } from "./element.ts";
import { button, notify } from "./parts.ts";

/** Code to be copied. */
export function code(text: string): HTMLElement {
  return el("div.code", el("pre", { tabindex: 0 }, text), copy(text));
}

/** A button that copies. */
export function copy(text: string, label = "Copy"): HTMLButtonElement {
  return button(label, async () => {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  }, { kind: "tiny quiet", picture: "copy" });
}
