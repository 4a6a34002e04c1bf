import { withQuery } from "./api.ts";
import { isAccount, root } from "./session.ts";

/** Where the window is: what follows the root, and the query. */
export interface Place {
  /** The first segment, "" at the root. */
  readonly page: string;
  /** The second one. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** Aborts when the window goes elsewhere. */
  readonly signal: AbortSignal;
}

let leaving = new AbortController();
let show: (place: Place) => void = () => {};
/** How often the window has come to a place. */
export let arrivals = 0;

/** The address of a page, of what it shows and of its query. */
export function href(page: string, id = "", query: Record<string, string> = {}): string {
  return withQuery([root, page, encodeURIComponent(id)].filter(Boolean).join("/"), query);
}

/** Which page an id belongs to, by its first letter. */
const BY_ID: Readonly<Record<string, string>> = {
  d: "deliveries", e: "events", s: "subscriptions", u: "users", a: "apps", g: "grants",
  i: "issuers", p: "resources",
};
const ID = /^[a-z]0[0-9a-z]{23,}$/; // a delivery's is longer

/** The page of what has this id; undefined where it is no id, or has none here. */
export function pageOf(id: string): string | undefined {
  return !isAccount && ID.test(id) ? BY_ID[id.charAt(0)] : undefined;
}

/** Goes to an address of these pages; `isReplaced`: going back does not come here again. */
export function go(address: string, isReplaced = false): void {
  const isHere = address === location.pathname + location.search;
  if (isReplaced || isHere) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  arrive();
}

/** The address of the same page with other filters. */
export function refined(changes: Record<string, string>): string {
  const { page, id, query } = here();
  return href(page, id, { ...Object.fromEntries(query), ...changes });
}

/** The same page with other filters. */
export const refine = (changes: Record<string, string>) => go(refined(changes), true);

/** Where the window is. */
export function here(): Omit<Place, "signal"> {
  const rest = location.pathname.slice(root.length).split("/").filter(Boolean);
  const [page = "", id = ""] = rest.map(decodeURIComponent);
  return { page, id, query: new URLSearchParams(location.search) };
}

/** Begins: every change of the address is shown, and links to these pages do not load anew. */
export function beginRouting(shows: typeof show): void {
  show = shows;
  addEventListener("popstate", () => {
    document.querySelectorAll("dialog").forEach((each) => each.close()); // they ask of another page
    arrive();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const isPlain = !event.defaultPrevented && event.button === 0 &&
      !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || link.hasAttribute("target") || link.hasAttribute("download")) return;
    const { origin, pathname, search } = new URL((link as HTMLAnchorElement).href);
    if (origin !== location.origin || !`${pathname}/`.startsWith(`${root}/`)) return;
    event.preventDefault();
    go(pathname + search);
  });
  arrive();
}

function arrive(): void {
  arrivals++;
  leaving.abort();
  leaving = new AbortController();
  show({ ...here(), signal: leaving.signal });
}
