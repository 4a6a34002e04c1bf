import { list, type Query } from "./api.ts";
import { openDialog } from "./dialog.ts";
import { type Child, el, fill, icon } from "./element.ts";
import { address } from "./format.ts";
import { CONSOLE_PAGES } from "./pages.ts";
import { lettersSwitch } from "./letters_switch.ts";
import { facts, reasonOf, state } from "./parts.ts";
import type { Subscription } from "./records.ts";
import { go, href, pageOf } from "./router.ts";
import { isAccount, mayWrite } from "./session.ts";

/** Something that can be chosen. */
interface Choice {
  readonly group: string;
  readonly icon: string;
  readonly label: string;
  readonly hint?: Child;
  readonly to: string;
}

const WAIT_MS = 150;
const EACH = 5;
const LATEST = 200;
const REQUEST_ID = /^[0-9a-f]{24}$/;

const HELP: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl K", "find or run anything"],
  ["/", "filter this list"],
  ["j  k", "next and previous row"],
  ["Enter", "open it"],
  ["r", "send it again"],
  ["p", "pause it"],
  ["g o  g d  g e  g s", "go to overview, deliveries, events, subscriptions"],
  ["g u  g a  g x", "go to users, audit, explorer"],
  ["?", "this list"],
];

/** Opens the palette, which finds pages, records by name, and any id that is pasted. */
export function openPalette(): void {
  if (document.querySelector("dialog[open]")) return; // a choice would leave that dialog
  const options = el("div", { id: "found", role: "listbox", "aria-label": "Found" });
  const field = el("input", {
    type: "text", role: "combobox", placeholder: "Find or run…", "aria-label": "Find or run",
    "aria-controls": "found", "aria-expanded": "true", "aria-autocomplete": "list",
    autocomplete: "off", spellcheck: "false",
  });
  const opened = el("dialog.palette", { "aria-label": "Find or run" },
    el("div.q", icon("search", 20), field, el("kbd", "esc")), options,
    el("footer", el("span", el("kbd", "↑"), el("kbd", "↓"), " choose"),
      el("span", el("kbd", "↵"), " open"),
      el("span", el("kbd", "Ctrl ↵"), " new tab"),
      "Paste any id: user, app, event, delivery, request"));
  let choices: readonly Choice[] = [];
  let chosen = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function show(found: readonly Choice[], end = found.length > 0 ? "" : "Nothing found."): void {
    const groups = Map.groupBy(found, ({ group }) => group);
    choices = [...groups.values()].flat(); // in the order of display
    fill(options, [...groups].map(([group, own]) => [
      el("p.nav-h", { role: "presentation" }, group),
      own.map((choice) => {
        const id = `choice-${choices.indexOf(choice)}`;
        return el("a", { id, role: "option", href: choice.to, tabindex: -1 }, icon(choice.icon),
          el("span.cut", marked(choice.label, field.value.trim())),
          el("span.hint.small.muted.cut", choice.hint));
      }),
    ]), end && el("p.empty", end));
    mark();
  }

  function mark(): void {
    options.querySelectorAll("[role=option]").forEach((option, at) => {
      option.ariaSelected = String(at === chosen);
      if (at === chosen) option.scrollIntoView({ block: "nearest" });
    });
    field.setAttribute("aria-activedescendant", `choice-${chosen}`);
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    const text = field.value.trim();
    chosen = 0;
    const pages = findPages(text);
    show(pages, pages.length > 0 ? "" : "…");
    timer = setTimeout(async () => {
      let [things, wrong]: [Choice[], string?] = [[]];
      try {
        things = await findThings(text);
      } catch (error) {
        wrong = reasonOf(error);
      }
      if (field.value.trim() === text) show([...pages, ...things], wrong); // the pages stay
    }, WAIT_MS);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      chosen = (chosen + step + choices.length) % Math.max(1, choices.length);
      mark();
    }
    const choice = choices[chosen];
    if (event.key !== "Enter" || event.isComposing || !choice) return;
    event.preventDefault();
    opened.close();
    if (event.metaKey || event.ctrlKey) open(choice.to, "_blank", "noopener");
    else go(choice.to);
  });
  options.addEventListener("click", () => opened.close());
  opened.addEventListener("click", (event) => event.target === opened && opened.close());
  opened.addEventListener("close", () => opened.remove());
  document.body.append(opened);
  opened.showModal();
  show(findPages(""));
}

function findPages(text: string): Choice[] {
  const pages = Object.entries(CONSOLE_PAGES).map(([page, { name, icon }]) =>
    ({ group: "Pages", icon: icon || "check", label: name, to: href(page) }));
  const acts = [
    ...["user", "app", "issuer", "resource"].map((one) =>
      toDo("plus", `Add ${one}…`, `${one}s`, "", "first")),
    toDo("plus", "Dispatch an event…", "events", "", "first"),
    toDo("settings", "Back up now…", "settings", "", "first"),
  ];
  return [...pages, ...mayWrite() ? acts : []]
    .filter(({ label }) => label && label.toLowerCase().includes(text.toLowerCase()));
}

/** A choice that opens a page and presses a button there. */
function toDo(icon: string, label: string, page: string, id: string, button: string): Choice {
  return { group: "Do", icon, label, to: href(page, id, { do: button }) };
}

/** Finds the records that the server knows by this name or id. */
async function findThings(text: string): Promise<Choice[]> {
  if (REQUEST_ID.test(text)) {
    const to = href("events", "", { request: text });
    return [{ group: "Request", icon: "events", label: `What ${text} set off`, to }];
  }
  const page = pageOf(text);
  if (page) return [{ group: "Id", icon: "search", label: text, hint: page, to: href(page, text) }];
  if (text.length < 2) return [];
  const query = { q: text, limit: EACH };
  const [subscriptions, apps, users] = await Promise.all([
    findSubscriptions(text),
    list<{ client_id: string; name: string }>("/backend/app", query),
    list<{ id: string; username: string }>("/backend/user", query),
  ]);
  return [
    ...subscriptions.map(({ id, endpoint, event, status }) => ({
      group: "Subscriptions", icon: "subscriptions",
      label: `${address(endpoint).join("")} ${event}`, hint: state(status),
      to: href("subscriptions", id),
    })),
    ...subscriptions.slice(0, mayWrite() ? 2 : 0).flatMap(({ id, endpoint, status }) => [
      toDo("resend", `Send failed to ${address(endpoint).join("")} again…`, "subscriptions", id,
        "first"),
      status === "active" && toDo("pause", `Pause ${address(endpoint).join("")}…`,
        "subscriptions", id, "p"),
    ]).filter((choice) => choice !== false),
    ...apps.items.map(({ client_id: id, name }) =>
      ({ group: "Apps and people", icon: "apps", label: name, hint: id, to: href("apps", id) })),
    ...users.items.map(({ id, username: label }) =>
      ({ group: "Apps and people", icon: "users", label, hint: "user", to: href("users", id) })),
  ];
}

/** Finds subscriptions whose endpoint begins with the text, or that are recent and contain it. */
async function findSubscriptions(text: string): Promise<Subscription[]> {
  const of = (query: Query) => list<Subscription>("/backend/subscription", query);
  const [begin, latest] = await Promise.all([of({ q: text, limit: EACH }), of({ limit: LATEST })]);
  const has = latest.items.filter(({ endpoint, event }) =>
    `${endpoint} ${event}`.toLowerCase().includes(text.toLowerCase()));
  const found = [...begin.items, ...has].map((each) => [each.id, each] as const);
  return [...new Map(found).values()].slice(0, EACH);
}

/** The label, in which the text is highlighted. */
function marked(label: string, text: string): Child {
  const at = text === "" ? -1 : label.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return label;
  const end = at + text.length;
  return [label.slice(0, at), el("mark", label.slice(at, end)), label.slice(end)];
}

/** Opens the list of the keys that do something here. */
export function showHelp(): void {
  openDialog("Keys", null, [
    facts(HELP.filter(([keys]) => !isAccount || !/^(Ctrl|g)/.test(keys))
      .map(([keys, what]) => [keys.split("  ").map((each) => [el("kbd", each), " "]), what])),
    lettersSwitch(),
  ]);
}
