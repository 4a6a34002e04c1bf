import { listOf, matching } from "../base/shape.ts";
import type { App } from "./app.ts";
import { OAuthError } from "./errors.ts";
import { BACKEND_READ_SCOPE, BACKEND_SCOPE, CONSUMER_SCOPE, isOfBackend } from "./principal.ts";

/** A scope-token of RFC 6749 §3.3 without the comma, which separates names here as a space does. */
const SCOPE_NAME = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,64}$/;

export const SCOPES = listOf(matching(
  SCOPE_NAME,
  "Must be 1 to 64 printable ASCII characters without space, comma, quote or backslash.",
));

/** What a scope lets an app do, for who is asked to allow it. */
export interface ScopeWords {
  readonly description: string;
  /** Whether it deserves a warning. */
  readonly grave: boolean;
}

export const OWN_SCOPES: ReadonlyMap<string, ScopeWords> = new Map([
  [CONSUMER_SCOPE, {
    description: "Subscribe to events and manage your subscriptions on your behalf",
    grave: false,
  }],
  [BACKEND_SCOPE, {
    description: "Administer this whole service: every app, user, key and event, not only yours",
    grave: true,
  }],
  [BACKEND_READ_SCOPE, {
    description: "Read all that this service holds but secrets: every app, user, event and log",
    grave: true,
  }],
]);

/** Whether `text` can be a scope's name: 1 to 64 characters of RFC 6749 §3.3, no comma. */
export function isScopeName(text: string): boolean {
  return SCOPE_NAME.test(text);
}

/**
 * Returns the names in a `scope` parameter, separated by spaces (RFC 6749 §3.3), commas, or any
 * mixture of both: in order, each once. Undefined where one cannot be a scope's name.
 */
export function parseScope(text: string): string[] | undefined {
  const names = new Set(text.split(/[ ,]/).filter((name) => name !== ""));
  return [...names].every(isScopeName) ? [...names] : undefined;
}

/**
 * Returns the scopes that a new grant gets (RFC 6749 §3.3): every one requested must be allowed to
 * the app, and what the user has not is left out. With none requested these are all of the app's
 * that the user has, except the backend's. Throws OAuthError `invalid_scope` rather than none.
 */
export function grantScope({ requested, app, user }: {
  readonly requested: readonly string[];
  readonly app: readonly string[];
  /** Undefined where the app acts for itself (client_credentials). */
  readonly user: readonly string[] | undefined;
}): string[] {
  checkAppScopes(requested, { scopes: app });
  const wanted = requested.length > 0 ? requested : app.filter((name) => !isOfBackend(name));
  const [first] = wanted;
  const granted = wanted.filter((name) => (user ?? app).includes(name));
  if (granted.length > 0) return granted;
  throw first === undefined
    ? new OAuthError("invalid_scope", "No scope can be granted unless it is asked for by name.")
    : refuseScope("The user does not have", first, addTo("user"));
}

/** Throws OAuthError `invalid_scope` where the app may not ask for all of the scopes. */
export function checkAppScopes(
  requested: readonly string[],
  { scopes, metadataUrl }: Pick<App, "scopes" | "metadataUrl">,
): void {
  const missing = requested.find((name) => !scopes.includes(name));
  if (missing === undefined) return;
  throw refuseScope("The app may not have", missing, metadataUrl ? REGISTER_APP : addTo("app"));
}

/**
 * Returns the scopes of the access token that a refresh asks for. RFC 6749 §6: only scopes that
 * were granted at first may be named, else OAuthError `invalid_scope`; none named = all of them.
 */
export function narrowScope(requested: readonly string[], chain: readonly string[]) {
  const missing = requested.find((name) => !chain.includes(name));
  if (missing === undefined) return requested.length === 0 ? chain : requested;
  const detail = `The grant does not carry scope ${missing}. Authorize anew with it.`;
  throw new OAuthError("invalid_scope", detail);
}

const addTo = (party: "app" | "user"): string =>
  `An administrator can allow it: add it to the scopes of the ${party}.`;

/** How an app gets what its metadata document cannot give it. */
export const REGISTER_APP = "One that is known by its metadata document cannot; an administrator " +
  "can register it.";

/** Names a scope, which is well-formed; nothing else of the request is repeated. */
function refuseScope(reason: string, name: string, remedy: string): OAuthError {
  // Clients of OpenID Connect ask for it by default, and miss an id token where it is allowed.
  const hint = name === "openid" ? " There are no id tokens: leave it out if you can." : "";
  return new OAuthError("invalid_scope", `${reason} scope ${name}.${hint} ${remedy}`);
}
