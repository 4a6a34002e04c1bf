import { el } from "./element.ts";
import { button, notify } from "./parts.ts";

/** A block of code with a button that copies it. */
export function code(text: string): HTMLElement {
  return el("div.code", el("pre", { tabindex: 0 }, text), copy(text));
}

/** A button that copies the text. */
export function copy(text: string, label = "Copy"): HTMLButtonElement {
  const act = () => navigator.clipboard.writeText(text)
    .then(() => "Copied.", () => "Not copied: select it.").then(notify);
  return button(label, act, { kind: "tiny quiet", picture: "copy" });
}
