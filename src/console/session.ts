/** What the server writes about itself into the page. */
export const site = document.body.dataset as Readonly<
  Record<"issuer" | "name" | "host" | "base" | "console" | "version" | "assets", string>
>;

/** From this difference on the machine's clock is wrong. Less may be the delay of a response. */
const FAR_MS = 5_000;
let offMs = 0;

/** The time by the server's clock if this machine's clock is far off, else by this machine's. */
export const serverNow = (): number => Date.now() + offMs;

/** Learns the server's time from a response's Date (RFC 9110 §6.6.1), which has whole seconds. */
export function learnTime({ headers }: Response): void {
  const ms = Date.parse(headers.get("date") ?? "") - Date.now();
  offMs = Math.abs(ms) > FAR_MS ? ms + 1000 : 0;
}

/** Whether these are a user's own pages, not those of operators. */
export const isAccount = location.pathname.startsWith(`${site.base}/account/`);
/** The path at which the pages begin. */
export const root = `${site.base}${isAccount ? "/account/webhooks" : "/console"}`;

const REDIRECT_URI = `${location.origin}${root}`;
const SCOPES = isAccount ? "consumer" : "backend backend:read consumer";
const CLIENT = "console";
/** How long before its expiry an access token is replaced, in most cases. */
const EARLY_MS = 30_000;

/** In the memory of this module alone. A reload signs in anew by the cookie of the session. */
let tokens: { access: string; refresh: string; untilMs: number } | undefined;
let renewal: Promise<string> | undefined;

// A window that leaves the page revokes its grant. If it comes back to the page as the browser has
// kept it, it signs in anew.
addEventListener("pagehide", () => {
  if (tokens) {
    const body = new URLSearchParams({ client_id: CLIENT, token: tokens.refresh });
    const init = { method: "POST", body, keepalive: true };
    fetch(`${site.base}/authorization/revoke`, init).catch(() => {});
  }
  tokens = undefined;
});
addEventListener("pageshow", ({ persisted }) => persisted && signIn());

/** The user who has signed in. */
export let me: Readonly<{ id: string; name: string; scopes: readonly string[] }> =
  { id: "", name: "", scopes: [] };
/** Whether the user may change what the pages show. */
export const mayWrite = (): boolean => isAccount || me.scopes.includes("backend");

/** Signs in. Returns "" if the user is signed in, the reason if refused, else leaves the page. */
export async function begin(): Promise<string> {
  const query = new URLSearchParams(location.search);
  const kept = JSON.parse(sessionStorage.getItem(CLIENT) ?? "null");
  const [code, error] = [query.get("code"), query.get("error")];
  if (!kept || kept.state !== query.get("state") || (!code && !error)) return signIn();
  sessionStorage.removeItem(CLIENT);
  history.replaceState(null, "", kept.address);
  if (!code) return query.get("error_description") || error || "refused";
  const exchange = { code, redirect_uri: REDIRECT_URI, code_verifier: kept.verifier };
  if (await obtain({ grant_type: "authorization_code", ...exchange })) return signIn();
  const answer = await fetch(`${site.base}/authorization/whoami`, {
    headers: { authorization: `Bearer ${tokens?.access}` },
  });
  const { sub, username, scope } = await answer.json();
  me = { id: sub, name: username, scopes: scope.split(" ") };
  return isAccount || me.scopes.some((each) => /^backend/.test(each)) ? ""
    : "Your user has neither of the scopes that it needs.";
}

/** Returns a valid access token, or leaves the page to sign in if there is none. */
export function accessToken(isRefused = false): Promise<string> {
  if (tokens && !isRefused && Date.now() < tokens.untilMs) return Promise.resolve(tokens.access);
  return renewal ??= renew().finally(() => renewal = undefined);
}

/** Leaves the page to sign in. The sign-in returns to the same address and the same question. */
export async function signIn(more: Record<string, string> = {}): Promise<never> {
  const address = new URL(location.href.replace(/[?&](code|error|state)=.*/, ""));
  // The button that has asked a question is disabled until the answer.
  const asked = document.querySelector("main [data-key][aria-disabled]")?.getAttribute("data-key");
  if (asked) address.searchParams.set("do", asked);
  const random = () => encode(crypto.getRandomValues(new Uint8Array(32)));
  const [state, verifier] = [random(), random()];
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  sessionStorage.setItem(CLIENT, JSON.stringify({ state, verifier, address }));
  const query = new URLSearchParams({
    client_id: CLIENT,
    redirect_uri: REDIRECT_URI,
    scope: SCOPES,
    state,
    code_challenge: encode(new Uint8Array(hash)),
    code_challenge_method: "S256",
    ...more,
  });
  location.replace(`${site.issuer}/authorization/authorize?${query}`);
  return new Promise(() => {});
}

async function renew(): Promise<string> {
  const { refresh: refresh_token } = tokens ?? await signIn();
  const error = await obtain({ grant_type: "refresh_token", refresh_token });
  return error || !tokens ? signIn() : tokens.access;
}

/** Requests tokens; returns the error, if any. Throws TypeError if the server does not answer. */
async function obtain(form: Record<string, string>): Promise<string | undefined> {
  const body = new URLSearchParams({ client_id: CLIENT, ...form });
  const answer = await fetch(`${site.base}/authorization/token`, { method: "POST", body });
  learnTime(answer);
  if (answer.status >= 500 || answer.status === 429) throw new TypeError();
  const { access_token: access, refresh_token: refresh, expires_in, error } = await answer.json();
  if (!answer.ok) return error ?? "";
  const ms = expires_in * 1000;
  tokens = { access, refresh, untilMs: Date.now() + Math.max(ms - EARLY_MS, ms / 2) };
  return undefined;
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
