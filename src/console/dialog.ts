import { type Child, el, fill } from "./element.ts";
import { failure, field } from "./parts.ts";
import { me } from "./session.ts";

/** Opens a modal dialog: the browser keeps the focus in the dialog, and Escape closes it. */
export function openDialog(
  title: string,
  words: Child,
  body: Child,
  foot: Child = el("button.btn.primary", "Close"),
  onsubmit?: (event: Event) => unknown,
) {
  const id = `words-${document.querySelectorAll("dialog").length}`; // a dialog may open another
  const made = el("dialog.dialog", { "aria-label": title, "aria-describedby": id },
    el("div.dh", el("h2", title), words && el("p.muted", { id }, words)),
    el("form", { method: "dialog", onsubmit }, el("div.body", body), el("div.df", foot)));
  made.addEventListener("close", () => made.replaceWith(...made.querySelectorAll(".notes")));
  document.body.append(made);
  made.showModal();
  // Else a scrolling element has the focus. No danger button: Enter may be pressed twice.
  made.querySelector<HTMLElement>("input, select, textarea, button:not(.danger)")?.focus();
  return made;
}

/** A question that is asked before an action. */
export interface Question<Made> {
  readonly title: string;
  readonly words?: Child;
  readonly body?: Child;
  /** The label of the button, with the number if there is one: "Send 1,640 again". */
  readonly action: Child;
  readonly isGrave?: boolean | undefined;
  /** Whether the dialog only informs, so that there is nothing to cancel. */
  readonly isNotice?: boolean;
  /** The text that the user must type, so that the wrong thing is not chosen by mistake. */
  readonly typed?: string | undefined;
  /** The visit (`arrivals`) that the question belongs to; it is not asked on a later one. */
  readonly came?: number;
  /** Does the action. If it throws, the dialog stays open and shows the error. */
  act(): Promise<Made>;
}

const TYPED = "gatepost.typed";

/**
 * Keeps what is typed into a dialog over a new sign-in. It is restored when the same user gets the
 * same question on the same page. No passwords, confirmations or unchanged values are kept.
 */
function keepTyped(opened: HTMLDialogElement, title: string): void {
  const fields = [...opened.querySelectorAll<HTMLInputElement>(
    ":is(input, select, textarea)[id]:not([type=password], #typed)")];
  const states = () => fields.map(({ value, checked }) => JSON.stringify({ value, checked }));
  const [given, about] = [states(), [me.id, location.pathname, title].join("\n")];
  const [what, ...values] = JSON.parse(sessionStorage.getItem(TYPED) ?? "[]");
  sessionStorage.removeItem(TYPED);
  // Stored at each key: where a browser opens the next page in another process, as Firefox does for
  // the sign-in, what a page stores as it leaves is lost.
  opened.addEventListener("input", () => {
    const typed = states().map((state, at) => state === given[at] ? null : state);
    sessionStorage.setItem(TYPED, JSON.stringify([about, ...typed]));
  });
  opened.addEventListener("close", () => sessionStorage.removeItem(TYPED));
  if (what === about) {
    fields.forEach((each, at) => {
      Object.assign(each, JSON.parse(values[at] ?? null));
      each.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }
}

/** Asks before an action. Resolves with its result, or with undefined if it was not done. */
export function ask<Made>(question: Question<Made>): Promise<Made | undefined> {
  const { title, words, body, action, typed, isNotice = false, act } = question;
  const { isGrave = typed !== undefined } = question;
  const done = Promise.withResolvers<Made | undefined>();
  const wrong = el("div");
  const { node, input } = field(["Type ", el("code", typed)], { id: "typed", name: "typed" });
  const doIt = el("button.btn", action);
  doIt.classList.add(isGrave ? "danger" : "primary");
  let making: Promise<Made> | undefined;
  const close = () => opened.close();
  const cancel = el("button.btn", { type: "button", onclick: close }, "Cancel");
  const inside = [body, wrong, typed !== undefined && node];
  const opened = openDialog(title, words, inside, [!isNotice && cancel, doIt], submit);
  // Compared as the user sees the text: letters with marks have several encodings (Unicode TR 15).
  const isSame = () => input.value.normalize("NFKC") === typed?.normalize("NFKC");
  const check = () => doIt.disabled = typed !== undefined && !isSame();
  input.addEventListener("input", check);
  keepTyped(opened, title);
  // If the user closes the dialog while the action runs, its result is still reported.
  opened.addEventListener("close", () => done.resolve(making));
  check();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (doIt.ariaDisabled) return;
    doIt.ariaDisabled = "true";
    try {
      await (making = act());
      close();
    } catch (error) {
      making = undefined;
      doIt.ariaDisabled = null;
      fill(wrong, failure(error));
      wrong.scrollIntoView({ block: "nearest" });
      opened.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    }
  }
  return done.promise;
}
