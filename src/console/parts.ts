import type { ProblemRecord } from "../api/backend/problem.ts";
import type { Infer } from "../base/shape.ts";
import { Refusal } from "./api.ts";
import { type Attributes, type Child, el, fill, icon } from "./element.ts";
import { ago, time } from "./format.ts";
import { here, refined } from "./router.ts";
import { signIn } from "./session.ts";

/** The head of a page: its h1, words below it, and what can be done there. */
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

/** Figures beside one another, their units small; with more words, and where they lead. */
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

/** When something was: the time, and how long ago where one points at it. */
export function when(iso: string | null | undefined, isLong = false): Child {
  return iso ? el("time", { datetime: iso, title: ago(iso) }, time(iso, isLong)) : "–";
}

/** The ways that states look, each by a shape beside its colour; others are idle. */
const LOOKS = {
  ok: ["delivered", "active", "healthy", "done", "signing"],
  bad: ["failed", "failing", "disabled"],
  warn: ["pending", "running"],
};
/** Those that are called other than they are named. */
const WORDS: Readonly<Record<string, string>> = { pending: "Waiting", signing: "Signs" };

/** A state in words. */
export function state(name: string, words?: Child): HTMLElement {
  const [look] = Object.entries(LOOKS).find(([, names]) => names.includes(name)) ?? ["idle"];
  const word = WORDS[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
  return el("span", { class: `st ${look}` }, words ?? word);
}

/** Something that is wrong, or is left to be set before others use the service. */
export type Problem = Infer<typeof ProblemRecord>;

/** Whether it is left to be set: its place is among the settings. */
export const isSetting = ({ kind }: Problem) => kind === "setting";

/** Whether it is to be shown as wrong now. */
export const isOpen = (problem: Problem) => !isSetting(problem) && !problem.muted_until;

/** A panel that says something weighty: `bad`, `warn` or `ok`. */
export function message(kind: string, ...words: readonly Child[]): HTMLElement {
  return el("div", { class: `msg ${kind}`, role: kind === "bad" ? "alert" : "status" },
    icon(kind === "ok" ? "check" : "alert", 20), el("div", words));
}

/** What went wrong, as the server says it, and by which request it can be found in the log. */
export function failure(error: unknown): HTMLElement {
  if (!(error instanceof Refusal)) {
    return message("bad",
      el("b", error instanceof TypeError ? "The server does not answer. " : `${error} `),
      "Load this page again to see whether your last action was done.",
      el("p", button("Load again", () => location.reload(), { kind: "tiny" })));
  }
  return message("bad",
    el("b", error.message),
    signInAgain(error.maxAge),
    error.errors.map(({ pointer, detail }) =>
      el("p", pointer && el("code", `${pointer} `), detail)),
    error.requestId && el("p.small.muted", "Request ", el("code", error.requestId)));
}

/** Leads to the password, where that is too old for what was refused, and back to what asked. */
export const signInAgain = (maxAge: string | undefined): Child => maxAge &&
  el("p", button("Sign in again", () => signIn({ max_age: maxAge })));

/** How a button looks, and how it is found. */
export type ButtonLook = Partial<Record<"kind" | "picture" | "title" | "key" | "id", string>>;

/**
 * A button; while its work goes on it cannot be pressed again, and what fails is told. One that
 * asks something has a label that ends in "…", and a key for `?do=`.
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
    made.ariaDisabled = "true"; // unlike `disabled` it leaves the focus there
    try {
      await act();
    } catch (error) {
      notify(failure(error));
    } finally {
      made.ariaDisabled = null;
      refocus(made);
    }
  });
  return made;
}

/** By what something is found again, where it has been made anew. */
const SAME = ["id", "data-key", "name", "href", "aria-label"];

/** Where the focus was lost with what had it: gives it to what is there now, or to a heading. */
export function refocus(last: Element | null, near?: Element): void {
  if (document.activeElement !== document.body || !last || last === document.body) return;
  const name = SAME.find((each) => last.hasAttribute(each)) ?? "id";
  const same = `main [${name}="${CSS.escape(last.getAttribute(name) ?? "")}"]`;
  const now = last.isConnected ? last : document.querySelector(same);
  const found = now ?? near?.closest(".insp")?.querySelector("h2") ?? document.querySelector("h1");
  if (found instanceof HTMLElement) found.focus({ preventScroll: true });
}

const shownFacts = new WeakMap<Element, string>();

/** Fills a place where what it shows has changed: nobody in there is disturbed for nothing. */
export function renew(place: Element, facts: unknown, make: () => Child): void {
  const json = JSON.stringify(facts);
  if (shownFacts.get(place) === json) return;
  shownFacts.set(place, json);
  const last = document.activeElement;
  fill(place, make());
  refocus(last, place);
}

const notes = el("div.notes", { "aria-live": "polite" });

/** Says something at the foot of the window, for a while; an error stays until it is closed. */
export function notify(words: Child): void {
  const isError = words instanceof Element && words.classList.contains("bad");
  const close = () => {
    const last = document.activeElement;
    note.remove();
    refocus(last);
  };
  const note = el("div.toast", words,
    el("button.btn.quiet.tiny", { onclick: close, "aria-label": "Close" }, "×"));
  // What a window covers is neither seen nor heard, and a place speaks of what comes after it.
  [...document.querySelectorAll("body, .dialog[open]")].at(-1)?.append(notes);
  setTimeout(() => notes.append(note), 50);
  if (!isError) setTimeout(close, 6000);
}

/** An input takes a time. Without an end Chromium lets a year have six digits, Date does not. */
export const DATE_TIME = { type: "datetime-local", max: "9999-12-31T23:59" };

/** A field of a window, and its input. */
export function field(label: Child, more: Attributes = {}) {
  const input = el("input", { id: "field", autocomplete: "off", ...more });
  return { node: el("div.field", el("label", { for: input.id }, label), input), input };
}

/** Some of which one is chosen: links to this page with another value in its query. */
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

/** The name by which the browser keeps whether single letters do something (WCAG 2.1.4). */
export const LETTERS = "gatepost.keys";
export const hasLetters = () => localStorage.getItem(LETTERS) !== "off";
