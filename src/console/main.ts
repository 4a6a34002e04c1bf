import { list } from "./api.ts";
import { type Child, el, fill, icon, shown } from "./element.ts";
import { count, number } from "./format.ts";
import { beginKeys, openPalette } from "./keys.ts";
import { CONSOLE_PAGES, webhooks } from "./pages.ts";
import { failure, head, isOpen, message, type Problem, refocus } from "./parts.ts";
import { beginRouting, href, type Place, refined } from "./router.ts";
import { begin, isAccount, mayWrite, me, site } from "./session.ts";

const PROBLEMS_EVERY_MS = 30_000;

const app = document.getElementById("app") ?? document.body;
const main = el("main", { id: "main", tabindex: -1 });
const badge = el("span.count", { hidden: true });
/** Tells screen readers which page is shown. */
const said = el("p.sr", { role: "status" });

/** The logo, which the server has put into the page. */
const drawn = app.querySelector("svg");
const mark = () => drawn?.cloneNode(true);

/** Shows the frame around every page. */
function showFrame(): void {
  app.className = isAccount ? "" : "frame";
  const skip = (event: Event) => {
    event.preventDefault();
    main.focus();
  };
  fill(app, el("a.skip", { href: "#main", onclick: skip }, "Skip to the content"),
    isAccount ? accountFrame() : consoleFrame(), said);
  beginKeys();
  if (!isAccount) countProblems().catch(() => {});
}

/**
 * Shows the page of an address. Its heading gets the focus, so that screen readers say where the
 * user is. If the heading is the same as before, the focus stays where it was.
 */
async function showPage(place: Place): Promise<void> {
  const { page, id, query } = place;
  for (const link of app.querySelectorAll("[data-page]")) {
    link.ariaCurrent = link.getAttribute("data-page") === page ? "page" : null;
  }
  main.ariaBusy = "true";
  const wanted = query.get("do");
  query.delete("do"); // the button is pressed only once
  if (wanted) history.replaceState(null, "", refined({ do: "" }));
  const content = await contentOf(place);
  if (place.signal.aborted) return; // the window has gone elsewhere meanwhile
  const [last, before] = [document.activeElement, main.querySelector("h1")?.textContent];
  if (content !== main.firstChild) fill(main, content); // a page that was kept keeps its focus
  main.ariaBusy = null;
  const heading = main.querySelector("h1");
  const name = shown(heading?.textContent ?? "");
  const one = CONSOLE_PAGES[page]?.name === name && id;
  document.title = [one, name, site.name].filter(Boolean).join(" · ");
  said.textContent = name;
  if (name === before) refocus(last);
  else {
    scrollTo(0, 0);
    heading?.focus({ preventScroll: true });
  }
  if (wanted) press(wanted);
}

async function contentOf(place: Place): Promise<Child> {
  const entry = isAccount ? webhooks
    : Object.hasOwn(CONSOLE_PAGES, place.page) && CONSOLE_PAGES[place.page];
  if (!entry) {
    return head("Nothing here", ["This console has no page at this address. ",
      el("a", { href: href("") }, "Overview")]);
  }
  try {
    const { show } = await entry.load();
    return await show(place, entry.name);
  } catch (error) {
    return [head(entry.name, null), failure(error)];
  }
}

/** Presses the button that an address names (`?do=`), but only one that asks for confirmation. */
function press(wanted: string): void {
  const button = main.querySelector<HTMLButtonElement>(`[data-key="${CSS.escape(wanted)}"]`);
  if (button?.textContent.endsWith("…")) button.click();
}

/** Shows why the sign-in failed and, if the server refused the user, a link to the account. */
function showRefused(reason: string | HTMLElement): void {
  app.className = "solo";
  fill(app, el("main.card", el("h1", "This does not open"), typeof reason !== "string" ? reason : [
    message("bad", reason),
    el("p", isAccount ? ["This page needs scope ", el("code", "consumer")]
      : ["The console needs scope ", el("code", "backend"), " or ", el("code", "backend:read")],
      ". Your own account is at ",
      el("a", { href: `${site.base}/account` }, `${site.base}/account`), "."),
  ]));
}

/** Why the sign-in failed: a browser that blocks the cookies of a site blocks its storage, too. */
const whyNot = (error: unknown) => error instanceof DOMException
  ? message("bad", "This page needs cookies: allow them for this site.") : failure(new TypeError());

function consoleFrame(): Child {
  const entries = Object.entries(CONSOLE_PAGES).filter(([, { icon }]) => icon !== "");
  const groups = Map.groupBy(entries, ([, { group }]) => group);
  const link = (page: string, name: string, picture: string, size: number) =>
    el("a", { href: href(page), "data-page": page }, icon(picture, size), name,
      page === "" && size < 20 && badge);
  const find = el("button.find", { type: "button", onclick: openPalette }, icon("search", 16),
    "Find or run…", el("kbd", /Mac/.test(navigator.platform) ? "⌘ K" : "Ctrl K"));
  const nav = [...groups].map(([group, own]) => [
    group && el("p.nav-h", group),
    own.map(([page, { name, icon }]) => link(page, name, icon, 18)),
  ]);
  const side = el("aside.side", { id: "side", popover: "auto" },
    el("div.side-in", brand(), find, el("nav.nav", { "aria-label": "Console" }, nav), who()));
  const close = () => side.hidePopover();
  side.addEventListener("click", close);
  side.addEventListener("toggle", ({ newState }) =>
    newState === "open" && side.querySelector("a")?.focus());
  matchMedia("(max-width: 64rem)").addEventListener("change", close);
  const top = el("header.top", mark(), el("b", site.name),
    el("div.row",
      el("button.icon", { type: "button", "aria-label": "Find or run", onclick: openPalette },
        icon("search", 20)),
      el("a.icon", { href: `${site.issuer}/account`, "aria-label": "Your account" },
        icon("users", 20))));
  return [
    side,
    top,
    main,
    el("nav.tabs-bottom", { "aria-label": "Most used" },
      link("", "Overview", "home", 20),
      link("deliveries", "Deliveries", "deliveries", 20),
      link("subscriptions", "Subscribers", "subscriptions", 20),
      link("apps", "Access", "grants", 20),
      el("button", { type: "button", popovertarget: "side" }, icon("menu", 20), "More")),
  ];
}

function accountFrame(): Child {
  main.className = "narrow";
  const bar = el("header.bar");
  import("./account.ts").then(({ fillBar }) => fillBar(bar, mark())); // not for the console
  return [bar, main];
}

function brand(): HTMLElement {
  return el("a.brand", { href: href("") }, mark(), el("span", el("b", site.name),
    el("span.sub", site.host === site.name ? `Gatepost ${site.version}` : site.host)));
}

function who(): HTMLElement {
  const { name } = me;
  const title = "Your account, and signing out";
  return el("a.who", { href: `${site.issuer}/account`, title },
    el("span.face", { "aria-hidden": "true" }, name.replace(/\W/g, "").slice(0, 2).toUpperCase()),
    el("span", el("b", name), el("span.sub", mayWrite() ? "Operator" : "Read only")));
}

/** Shows the number of problems beside the name of the overview. */
async function countProblems(): Promise<void> {
  setTimeout(() => countProblems().catch(() => {}), PROBLEMS_EVERY_MS); // the next call may succeed
  const { items } = await list<Problem>("/backend/problem");
  const open = items.filter(isOpen).length;
  badge.hidden = open === 0;
  badge.textContent = number(open);
  badge.title = count(open, "problem");
}

// Only a secure context has the hash function for PKCE, and nobody reads a token on its way there.
const reason = isSecureContext ? await begin().catch(whyNot)
  : message("bad", "Browsers allow signing in only at https addresses and on this machine itself.");
if (reason === "") {
  showFrame();
  beginRouting(showPage);
} else showRefused(reason);
