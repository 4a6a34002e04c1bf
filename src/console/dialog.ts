import { type Child, el, fill } from "./element.ts";
import { failure } from "./parts.ts";

/** A window above the page; the browser keeps the focus in it, and Escape closes it. */
export function openDialog(title: string, words: Child, body: Child, look = "") {
  const made = el("dialog", { class: `dialog ${look}`, "aria-label": title },
    el("div", { class: "dh" }, el("h2", {}, title),
      words ? el("p", { class: "muted" }, words) : null),
    body);
  made.addEventListener("close", () => made.remove());
  document.body.append(made);
  made.showModal();
  // Else what scrolls would have the focus.
  made.querySelector<HTMLElement>("input, textarea, button:not(.code *)")?.focus();
  return made;
}

/** What is asked before something is done. */
export interface Question {
  readonly title: string;
  readonly words?: Child;
  readonly body?: Child;
  /** What the button says, with the number where there is one: "Send 1,640 again". */
  readonly action: Child;
  readonly isGrave?: boolean;
  /** Whether it only tells: then there is nothing to cancel. */
  readonly isNotice?: boolean;
  /** What must be typed, so that it is not the wrong one. */
  readonly typed?: string | undefined;
  /** Does it; where it throws, the window stays and says why. */
  act(): Promise<unknown>;
}

/** Asks before something is done; resolves with true once it has been done, false if it was not. */
export function ask(question: Question): Promise<boolean> {
  const { title, words, body, action, isGrave = false, isNotice = false, typed, act } = question;
  return new Promise<boolean>((resolve) => {
    const wrong = el("div");
    const name = el("input", { "aria-label": `Type ${typed}`, autocomplete: "off", name: "typed" });
    const doIt = el("button", { class: `btn ${isGrave ? "danger" : "primary"}` }, action);
    const cancel = el("button", { type: "button", class: "btn" }, "Cancel");
    let isDone = false;
    const form = el("form", { method: "dialog", onsubmit: submit },
      el("div", { class: "body" }, body, wrong, typed === undefined ? null
        : el("div", { class: "field tight" },
          el("label", {}, "Type ", el("code", {}, typed)), name)),
      el("div", { class: "df" }, !isNotice && cancel, doIt));
    const opened = openDialog(title, words, form);
    const check = () => doIt.disabled = typed !== undefined && name.value !== typed;
    name.addEventListener("input", check);
    cancel.addEventListener("click", () => opened.close());
    opened.addEventListener("close", () => resolve(isDone));
    check();

    async function submit(event: Event): Promise<void> {
      event.preventDefault();
      doIt.disabled = true;
      try {
        await act();
        isDone = true;
        opened.close();
      } catch (error) {
        fill(wrong, failure(error));
        check();
      }
    }
  });
}

/** Shows a secret that is shown once. */
export function showOnce(title: string, words: Child, body: Child): Promise<boolean> {
  const act = () => Promise.resolve();
  return ask({ title, words, body, action: "I have kept it", isNotice: true, act });
}
