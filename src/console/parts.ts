import type { ProblemRecord } from "../api/backend/problem.ts";
import type { Infer } from "../base/shape.ts";
import { Refusal } from "./api.ts";
import { type Attributes, type Child, el, fill, icon } from "./element.ts";
import { ago, time } from "./format.ts";
import { here, refined } from "./router.ts";
import { signIn } from "./session.ts";

/** The head of a page: its h1, a text below it, and its actions. */
export function head(title: Child, words: Child, ...actions: readonly Child[]): HTMLElement {
  return el("header.head",
    el("div", el("h1", { tabindex: -1 }, title), words && el("p", words)),
    el("div.row.actions", actions));
}

/** A card with a heading, and something at its heading's end. */
export function card(
  heading: Child,
  { end, wide = "", padded = true }: { end?: Child; wide?: string; padded?: boolean } = {},
  ...body: readonly Child[]
): HTMLElement {
  return el("section", { class: `card ${wide}` },
    heading && el("header", el("h2", heading), end),
    padded ? el("div.body", body) : body);
}

/** Facts of one thing, each under its name; those without a value are left out. */
export function facts(pairs: readonly (readonly [name: Child, value: Child])[]): HTMLElement {
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl.facts", given.map(([name, value]) => [el("dt", name), el("dd", value)]));
}

/** Figures side by side, each with a small unit, a text below it and a link, if given. */
export function figures(
  all: readonly (readonly [name: string, value: string, words?: Child, to?: string])[],
  look = "",
): HTMLElement {
  return el("div", { class: `kpis ${look}` }, all.map(([name, value, words, to]) => {
    const [figure, ...unit] = value.split(" ");
    return el(to ? "a" : "div", { class: "kpi", href: to }, el("div.small.muted", name),
      el("div.v", figure, el("small", " ", unit.join(" "))),
      el("div.sub", words));
  }));
}

/** A time; the pointer shows how long ago it was. */
export function when(iso: string | null | undefined, isLong = false): Child {
  return iso ? el("time", { datetime: iso, title: ago(iso) }, time(iso, isLong)) : "–";
}

/** The states by look; each look has a shape beside its colour. Other states look idle. */
const LOOKS = {
  ok: ["delivered", "active", "healthy", "done", "signing"],
  bad: ["failed", "failing", "disabled"],
  warn: ["pending", "running"],
};
/** The states whose label differs from their name. */
const WORDS: Readonly<Record<string, string>> = { pending: "Waiting", signing: "Signs" };

/** A state in words. */
export function state(name: string, words?: Child): HTMLElement {
  const [look] = Object.entries(LOOKS).find(([, names]) => names.includes(name)) ?? ["idle"];
  const word = WORDS[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
  return el("span", { class: `st ${look}` }, words ?? word);
}

/** A problem, or a setting that is missing before others may use the service. */
export type Problem = Infer<typeof ProblemRecord>;

/** Whether the problem is a missing setting, which the page of settings shows. */
export const isSetting = ({ kind }: Problem) => kind === "setting";

export const isOpen = (problem: Problem) => !isSetting(problem) && !problem.muted_until;

/** A panel with an important message of kind `bad`, `warn` or `ok`. */
export function message(kind: string, ...words: readonly Child[]): HTMLElement {
  return el("div", { class: `msg ${kind}`, role: kind === "bad" ? "alert" : "status" },
    icon(kind === "ok" ? "check" : "alert", 20), el("div", words));
}

/**
 * An error in one sentence. Every browser's error of a failed import() names the module; a request
 * without a response ends with a TypeError or, after its time, with a TimeoutError.
 */
export const reasonOf = (error: unknown): string => error instanceof Refusal ? error.message
  : /module/.test(`${error}`) ? "A part of this page cannot be loaded."
  : /^T[iy]/.test(`${error}`) ? "The server does not answer."
  : `${error}`;

/** An error in the server's words, with the id of the request, by which the log can be searched. */
export function failure(error: unknown): HTMLElement {
  return message("bad", el("b", reasonOf(error)), error instanceof Refusal ? [
    signInAgain(error.maxAge),
    error.errors.map(({ pointer, detail }) =>
      el("p", pointer && el("code", `${pointer} `), detail)),
    error.requestId && el("p.small.muted", "Request ", el("code", error.requestId)),
  ] : [
    " Load this page again to see whether your last action was done.",
    el("p", button("Load again", () => location.reload(), { kind: "tiny" })),
  ]);
}

/** A button that signs in anew and returns to the question, if the last sign-in is too old. */
export const signInAgain = (maxAge: string | undefined): Child => maxAge &&
  el("p", button("Sign in again", () => signIn({ max_age: maxAge })));

/** How a button looks, and how it is found. */
export type ButtonLook = Partial<Record<"kind" | "picture" | "title" | "key" | "id", string>>;

/**
 * A button that cannot be pressed again while its action runs, and shows the error if that fails.
 * The label of a button that asks a question ends in "…", and its key is for `?do=`.
 */
export function button(
  label: Child,
  act: () => unknown,
  { kind = "", picture, title, key, id }: ButtonLook = {},
): HTMLButtonElement {
  const made = el("button",
    { type: "button", class: `btn ${kind}`, title, id, "data-key": key },
    picture && icon(picture, 16), label);
  made.addEventListener("click", async () => {
    if (made.ariaDisabled) return;
    made.ariaDisabled = "true"; // unlike `disabled` this keeps the focus
    try {
      await act();
    } catch (error) {
      tell(error);
    } finally {
      made.ariaDisabled = null;
      refocus(made);
    }
  });
  return made;
}

/** The attributes by which an element is found again after it was rendered anew. */
const SAME = ["id", "data-key", "name", "href", "aria-label"];

/** If the focused element was removed, focuses the element that replaces it, or else a heading. */
export function refocus(last: Element | null, near?: Element): void {
  if (document.activeElement !== document.body || !last || last === document.body) return;
  const name = SAME.find((each) => last.hasAttribute(each)) ?? "id";
  const same = `main [${name}="${CSS.escape(last.getAttribute(name) ?? "")}"]`;
  const now = last.isConnected ? last : document.querySelector(same);
  const found = now ?? near?.closest(".insp")?.querySelector("h2") ?? document.querySelector("h1");
  if (found instanceof HTMLElement) found.focus({ preventScroll: true });
}

const shownFacts = new WeakMap<Element, string>();

/** Fills a place only if its facts have changed, so that a user there is not disturbed. */
export function renew(place: Element, facts: unknown, make: () => Child): void {
  const json = JSON.stringify(facts);
  if (shownFacts.get(place) === json) return;
  shownFacts.set(place, json);
  const last = document.activeElement;
  fill(place, make());
  refocus(last, place);
}

const notes = el("div.notes", { "aria-live": "polite" });

/** Shows a message at the foot of the window for 6 s; an error stays until it is closed. */
export function notify(words: Child): void {
  const isError = words instanceof Element && words.classList.contains("bad");
  const close = () => {
    const last = document.activeElement;
    note.remove();
    refocus(last);
  };
  const note = el("div.toast", words,
    el("button.btn.quiet.tiny", { onclick: close, "aria-label": "Close" }, "×"));
  // A dialog hides all that it covers, so the notes move into the topmost dialog. Screen readers
  // announce only what a region gets later.
  [...document.querySelectorAll("body, .dialog[open]")].at(-1)?.append(notes);
  setTimeout(() => notes.append(note), 50);
  if (!isError) setTimeout(close, 6000);
}

/** Shows an error at the foot of the window. */
export const tell = (error: unknown) => notify(failure(error));

/** Attributes of an input for a time. Without `max`, Chromium allows years that Date does not. */
export const DATE_TIME = { type: "datetime-local", max: "9999-12-31T23:59" };

/** A field of a dialog, and its input. */
export function field(label: Child, more: Attributes = {}) {
  const input = el("input", { id: "field", autocomplete: "off", ...more });
  return { node: el("div.field", el("label", { for: input.id }, label), input), input };
}

/** Options of which one is chosen: links to this page with another value in its query. */
export function segments(
  name: string,
  options: readonly (readonly [value: string, label: Child])[],
  current = here().query.get(name) ?? "",
): HTMLElement {
  const links = options.map(([value, label]) =>
    el("a", {
      href: refined({ [name]: value }),
      "aria-current": current === value ? "true" : undefined,
    }, label));
  return el("div.scroll-x", el("nav.seg", { "aria-label": name }, links));
}

/** The key in the browser's storage that says whether single letters are keys (WCAG 2.1.4). */
export const LETTERS = "gatepost.keys";
export const hasLetters = () => localStorage.getItem(LETTERS) !== "off";
