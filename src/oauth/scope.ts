import { listOf, matching } from "../base/shape.ts";
import type { App } from "./app.ts";
import { OAuthError } from "./errors.ts";
import { BACKEND_READ_SCOPE, BACKEND_SCOPE, CONSUMER_SCOPE, isOfBackend } from "./principal.ts";

/** A scope-token (RFC 6749 §3.3) without the comma, which also separates names here. */
const SCOPE_NAME = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,64}$/;

export const SCOPES = listOf(matching(
  SCOPE_NAME,
  "Must be 1 to 64 printable ASCII characters without space, comma, quote or backslash.",
));

/** What a scope lets an app do, in words for the user who is asked to allow it. */
export interface ScopeWords {
  readonly description: string;
  /** Whether the consent page warns of the scope. */
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
    description: "Read all that this service holds except secrets: every app, user, event and log",
    grave: true,
  }],
]);

/** Whether `text` can be a scope's name: 1 to 64 characters of RFC 6749 §3.3, no comma. */
export function isScopeName(text: string): boolean {
  return SCOPE_NAME.test(text);
}

/**
 * Returns the names in a `scope` parameter, separated by spaces (RFC 6749 §3.3) or commas, in their
 * order and without repetitions. Undefined if one of them cannot be a scope's name.
 */
export function parseScope(text: string): string[] | undefined {
  const names = new Set(text.split(/[ ,]/).filter((name) => name !== ""));
  return [...names].every(isScopeName) ? [...names] : undefined;
}

/**
 * Returns the scopes that a new grant gets (RFC 6749 §3.3). The app must have every requested
 * scope; scopes that the user does not have are left out. If none is requested, the grant gets all
 * of the app's scopes that the user has, except the backend's. Throws OAuthError `invalid_scope` if
 * no scope remains.
 */
export function grantScope({ requested, app, user }: {
  readonly requested: readonly string[];
  readonly app: readonly string[];
  /** Undefined if the app acts for itself (client_credentials). */
  readonly user: readonly string[] | undefined;
}): string[] {
  checkAppScopes(requested, { scopes: app });
  const wanted = requested.length > 0 ? requested : app.filter((name) => !isOfBackend(name));
  const [first] = wanted;
  const granted = wanted.filter((name) => (user ?? app).includes(name));
  if (granted.length > 0) return granted;
  throw first === undefined
    ? new OAuthError("invalid_scope", "No scope is granted by default: request one by name.")
    : scopeError("The user does not have", first, addTo("user"));
}

/** Throws OAuthError `invalid_scope` if the app lacks one of the requested scopes. */
export function checkAppScopes(
  requested: readonly string[],
  { scopes, metadataUrl }: Pick<App, "scopes" | "metadataUrl">,
): void {
  const missing = requested.find((name) => !scopes.includes(name));
  if (missing === undefined) return;
  throw scopeError("The app may not have", missing, metadataUrl ? REGISTER_APP : addTo("app"));
}

/**
 * Returns the scopes of the access token that a refresh asks for (RFC 6749 §6): the requested ones,
 * or all of the grant. Throws OAuthError `invalid_scope` if the grant lacks a requested scope.
 */
export function narrowScope(requested: readonly string[], chain: readonly string[]) {
  const missing = requested.find((name) => !chain.includes(name));
  if (missing === undefined) return requested.length === 0 ? chain : requested;
  const detail = `The grant does not have scope ${missing}. Authorize again with it.`;
  throw new OAuthError("invalid_scope", detail);
}

const addTo = (party: "app" | "user"): string =>
  `An administrator can allow it: add it to the scopes of the ${party}.`;

/** The advice for an app that its metadata document cannot give the scope. */
export const REGISTER_APP = "An app known by its metadata document cannot; an administrator " +
  "can register it.";

/** Makes the error for a scope. Its name is safe to repeat, because it is well-formed. */
function scopeError(reason: string, name: string, remedy: string): OAuthError {
  // OpenID Connect clients request it by default, and fail without an id token if it is granted.
  const hint = name === "openid" ? " There are no id tokens: leave it out if you can." : "";
  return new OAuthError("invalid_scope", `${reason} scope ${name}.${hint} ${remedy}`);
}
