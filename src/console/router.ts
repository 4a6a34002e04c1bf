import { withQuery } from "./api.ts";
import { isAccount, root } from "./session.ts";

/** The address of the window: the path below the root, and the query. */
export interface Place {
  /** The first segment, "" at the root. */
  readonly page: string;
  /** The second segment. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** Aborts when the address changes. */
  readonly signal: AbortSignal;
}

let leaving = new AbortController();
let show: (place: Place) => void = () => {};
/** The number of page visits so far, which identifies the current visit. */
export let arrivals = 0;

/** The address of a page, with the id of what it shows and a query. */
export function href(page: string, id = "", query: Record<string, string> = {}): string {
  return withQuery([root, page, encodeURIComponent(id)].filter(Boolean).join("/"), query);
}

/** Which page an id belongs to, by its first letter. */
const BY_ID: Readonly<Record<string, string>> = {
  d: "deliveries", e: "events", s: "subscriptions", u: "users", a: "apps", g: "grants",
  i: "issuers", p: "resources",
};
const ID = /^[a-z]0[0-9a-z]{23,}$/; // a delivery's is longer

/** The page of the record with this id; undefined if it is no id or has no page here. */
export function pageOf(id: string): string | undefined {
  return !isAccount && ID.test(id) ? BY_ID[id.charAt(0)] : undefined;
}

/** Goes to an address of these pages. With `isReplaced`, Back skips the page that is left. */
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

/** Shows the same page with other filters. */
export const refine = (changes: Record<string, string>) => go(refined(changes), true);

/** The current address without its signal. */
export function here(): Omit<Place, "signal"> {
  const rest = location.pathname.slice(root.length).split("/").filter(Boolean);
  const [page = "", id = ""] = rest.map(decodeURIComponent);
  return { page, id, query: new URLSearchParams(location.search) };
}

/** Starts to show each change of the address. Links to these pages do not reload the document. */
export function beginRouting(shows: typeof show): void {
  show = shows;
  addEventListener("popstate", () => {
    document.querySelectorAll("dialog").forEach((each) => each.close()); // they are of the old page
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
