import { type Child, el, fill } from "./element.ts";
import { failure, field } from "./parts.ts";
import { me } from "./session.ts";

/** A window above the page; the browser keeps the focus in it, and Escape closes it. */
export function openDialog(
  title: string,
  words: Child,
  body: Child,
  foot: Child = el("button.btn.primary", "Close"),
  onsubmit?: (event: Event) => unknown,
) {
  const id = `words-${document.querySelectorAll("dialog").length}`; // one may open another
  const made = el("dialog.dialog", { "aria-label": title, "aria-describedby": id },
    el("div.dh", el("h2", title), words && el("p.muted", { id }, words)),
    el("form", { method: "dialog", onsubmit }, el("div.body", body), el("div.df", foot)));
  made.addEventListener("close", () => made.replaceWith(...made.querySelectorAll(".notes")));
  document.body.append(made);
  made.showModal();
  // Else what scrolls would have the focus; what a key pressed twice would do must be harmless.
  made.querySelector<HTMLElement>("input, select, textarea, button:not(.danger)")?.focus();
  return made;
}

/** What is asked before something is done. */
export interface Question<Made> {
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
  /** The arrival of which it is asked: it comes late, and not where the window has gone since. */
  readonly came?: number;
  /** Does it; where it throws, the window stays and says why. */
  act(): Promise<Made>;
}

const TYPED = "gatepost.typed";

/**
 * Keeps what is typed into a window over a sign-in that comes between: no password, and nothing
 * that confirms or was there before. Who is asked the same there next finds it there again.
 */
function keepTyped(opened: HTMLDialogElement, title: string): void {
  const fields = [...opened.querySelectorAll<HTMLInputElement>(
    ":is(input, select, textarea)[id]:not([type=password], #typed)")];
  const states = () => fields.map(({ value, checked }) => JSON.stringify({ value, checked }));
  const [given, about] = [states(), [me.id, location.pathname, title].join("\n")];
  const [what, ...values] = JSON.parse(sessionStorage.getItem(TYPED) ?? "[]");
  sessionStorage.removeItem(TYPED);
  // At each key: what a page stores as it leaves is lost where a browser opens the next one in
  // another process, as Firefox does for the sign-in.
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

/** Asks before something is done; resolves with what came of it, undefined where it was not. */
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
  // As it is seen: letters with marks have several encodings (Unicode TR 15).
  const isSame = () => input.value.normalize("NFKC") === typed?.normalize("NFKC");
  const check = () => doIt.disabled = typed !== undefined && !isSame();
  input.addEventListener("input", check);
  keepTyped(opened, title);
  // Whoever closes the window meanwhile is told, too, what came of it.
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
