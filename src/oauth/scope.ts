import { BACKEND_SCOPE, CONSUMER_SCOPE } from "./principal.ts";

/** A scope-token of RFC 6749 §3.3 without the comma, which separates names here as a space does. */
export const SCOPE_NAME = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,64}$/;

/** Who takes part in one decision about scopes. */
export interface ScopeRequest {
  /** What the request asked for; undefined or empty: nothing by name. */
  readonly requested: readonly string[] | undefined;
  /** What the app may ask for. */
  readonly app: readonly string[];
  /** What the user has; undefined where the app acts for itself (client_credentials). */
  readonly user: readonly string[] | undefined;
}

/** What a scope lets an app do, for who is asked to allow it. */
export interface ScopeWords {
  readonly description: string;
  /** Whether it deserves a warning. */
  readonly grave: boolean;
}

/** The service's own scopes in words. */
export const OWN_SCOPES: ReadonlyMap<string, ScopeWords> = new Map([
  [CONSUMER_SCOPE, {
    description: "Subscribe to events and manage your subscriptions on your behalf",
    grave: false,
  }],
  [BACKEND_SCOPE, {
    description: "Administer this whole service: every app, user, key and event, not only yours",
    grave: true,
  }],
]);

/** Tells whether `text` can be a scope's name: 1 to 64 characters of RFC 6749 §3.3, no comma. */
export function isScopeName(text: string): boolean {
  return SCOPE_NAME.test(text);
}

/**
 * Returns the names in a `scope` parameter, separated by spaces (RFC 6749 §3.3), commas, or any
 * mixture of both: in order, each once. Undefined where any is no scope name.
 */
export function parseScope(text: string): string[] | undefined {
  const names = new Set(text.split(/[ ,]/).filter((name) => name !== ""));
  return [...names].every(isScopeName) ? [...names] : undefined;
}

/** Returns scope names as the `scope` parameter of RFC 6749 §3.3: separated by spaces. */
export function formatScope(names: readonly string[]): string {
  return names.join(" ");
}

/**
 * Returns the scopes that a new grant gets, or undefined for `invalid_scope` (RFC 6749 §3.3): every
 * one requested must be allowed to the app, and what the user has not is left out. With none
 * requested these are all of the app's that the user has, except `backend`. An empty list is never
 * granted.
 */
export function grantScope({ requested, app, user }: ScopeRequest): string[] | undefined {
  const named = requested !== undefined && requested.length > 0;
  if (named && !isSubset(requested, app)) return undefined;
  const wanted = named ? requested : app.filter((name) => name !== BACKEND_SCOPE);
  const owned = new Set(user ?? app);
  return unlessEmpty([...new Set(wanted)].filter((name) => owned.has(name)));
}

/**
 * Returns the scopes of the access token that a refresh asks for, or undefined for `invalid_scope`.
 * RFC 6749 §6: only scopes that were granted at first may be named; none named = all of them.
 */
export function narrowScope(
  requested: readonly string[] | undefined,
  chain: readonly string[],
): string[] | undefined {
  if (requested === undefined || requested.length === 0) return unlessEmpty([...chain]);
  return isSubset(requested, chain) ? [...new Set(requested)] : undefined;
}

function isSubset(names: readonly string[], of: readonly string[]): boolean {
  const all = new Set(of);
  return names.every((name) => all.has(name));
}

function unlessEmpty(names: string[]): string[] | undefined {
  return names.length > 0 ? names : undefined;
}
