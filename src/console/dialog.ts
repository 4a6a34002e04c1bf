import { type Child, el, fill } from "./element.ts";
import { field } from "./field.ts";
import { failure } from "./parts.ts";

/** A window above the page; the browser keeps the focus in it, and Escape closes it. */
export function openDialog(
  title: string,
  words: Child,
  body: Child,
  foot: Child = el("button", { class: "btn primary" }, "Close"),
  onsubmit?: (event: Event) => unknown,
) {
  const id = `words-${document.querySelectorAll("dialog").length}`; // one may open another
  const made = el("dialog", { class: "dialog", "aria-label": title, "aria-describedby": id },
    el("div", { class: "dh" }, el("h2", {}, title),
      words ? el("p", { class: "muted", id }, words) : null),
    el("form", { method: "dialog", onsubmit }, el("div", { class: "body" }, body),
      el("div", { class: "df" }, foot)));
  made.addEventListener("close", () => made.replaceWith(...made.querySelectorAll(".notes")));
  document.body.append(made);
  made.showModal();
  // Else what scrolls would have the focus; what a key pressed twice would do must be harmless.
  made.querySelector<HTMLElement>("input, select, textarea, button:not(.danger)")?.focus();
  return made;
}

/** What is asked before something is done. */
export interface Question {
  readonly title: string;
  readonly words?: Child;
  readonly body?: Child;
  /** What the button says, with the number where there is one: "Send 1,640 again". */
  readonly action: Child;
  readonly isGrave?: boolean | undefined;
  /** Whether it only tells: then there is nothing to cancel. */
  readonly isNotice?: boolean;
  /** What must be typed, so that it is not the wrong one. */
  readonly typed?: string | undefined;
  /** Does it; where it throws, the window stays and says why. */
  act(): Promise<unknown>;
}

/** Asks before something is done; resolves with true once it has been done, false if it was not. */
export function ask(question: Question): Promise<boolean> {
  const { title, words, body, action, typed, isNotice = false, act } = question;
  const { isGrave = typed !== undefined } = question;
  return new Promise<boolean>((resolve) => {
    const wrong = el("div");
    const { node, input } = field(["Type ", el("code", {}, typed)], { id: "typed", name: "typed" });
    const doIt = el("button", { class: `btn ${isGrave ? "danger" : "primary"}` }, action);
    let isDone: boolean | Promise<boolean> = false;
    const close = () => opened.close();
    const cancel = el("button", { type: "button", class: "btn", onclick: close }, "Cancel");
    const inside = [body, wrong, typed !== undefined && node];
    const opened = openDialog(title, words, inside, [!isNotice && cancel, doIt], submit);
    const check = () => doIt.disabled = typed !== undefined && input.value !== typed;
    input.addEventListener("input", check);
    opened.addEventListener("close", () => resolve(isDone));
    check();

    async function submit(event: Event): Promise<void> {
      event.preventDefault();
      if (doIt.ariaDisabled) return;
      doIt.ariaDisabled = "true";
      try {
        // Whoever closes the window meanwhile is told, too, what came of it.
        await (isDone = act().then(() => true));
        close();
      } catch (error) {
        isDone = false;
        doIt.ariaDisabled = null;
        fill(wrong, failure(error));
        wrong.scrollIntoView({ block: "nearest" });
        opened.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
      }
    }
  });
}

/** Shows a secret that is shown once. */
export function showOnce(title: string, words: Child, body: Child): Promise<boolean> {
  const act = () => Promise.resolve();
  return ask({ title, words, body, action: "I have kept it", isNotice: true, act });
}
