import { call, get, Refusal, request, withQuery } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { button } from "./parts.ts";
import { me, root, site } from "./session.ts";

const SESSIONS = "/consumer/session";

/** Fills the bar above a user's own pages with the same entries as the bar of `/account`. */
export function fillBar(bar: HTMLElement, mark: Child): void {
  const account = `${site.base}/account`;
  const toConsole = el("a", { href: site.console, hidden: true }, "Console");
  fill(bar,
    el("a.brand", { href: account }, mark, el("b", site.name)),
    el("nav", { "aria-label": "Account" },
      el("a", { href: account }, "Your account"),
      el("a", { href: root, "aria-current": "page" }, "Your webhooks"),
      toConsole),
    el("div.row", el("bdi.small.muted", me.name), button("Sign out", signOut, { kind: "tiny" })));
  // The token here has scope `consumer` alone, so the link depends on the scopes of the user.
  get<{ scopes: readonly string[] }>("/consumer/account").then(({ scopes }) =>
    toConsole.hidden = !site.console || !scopes.some((scope) => /^backend/.test(scope)), () => {});
}

/** Ends the session that this browser's cookie names, and opens `/account` to sign in again. */
async function signOut(): Promise<void> {
  const id = await findSession();
  if (id) await call("DELETE", `${SESSIONS}/${id}`);
  location.assign(`${site.base}/account${id ? "?done=session" : ""}`);
}

async function findSession(cursor = ""): Promise<string | undefined> {
  const path = withQuery(SESSIONS, { limit: 200, cursor });
  const answer = await request("GET", path, { credentials: "same-origin" });
  if (!answer.ok) throw new Refusal(answer, await answer.json().catch(() => ({})));
  const { items, next_cursor } = await answer.json();
  const { id } = items.find(({ current }: { current: boolean }) => current) ?? {};
  return id ?? (next_cursor ? findSession(next_cursor) : undefined);
}
