import { Problem } from "../base/problem.ts";
import { BACKEND_SCOPE, type Caller, CONSOLE_APP } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { hasSession } from "../store/sessions.ts";

const MAX_AGE_SECONDS = 15 * 60;

/** How long a sign-in counts as recent. */
export const RECENT_LOGIN_MS = MAX_AGE_SECONDS * 1000;

/**
 * Whether a sign-in at `sinceMs` is at most `ageMs` old. A time in the future is from before the
 * clock was set back. Its age is unknown, so it counts by its distance from now.
 */
export const isWithin = (ageMs: number, sinceMs: number, nowMs: number): boolean =>
  Math.abs(nowMs - sinceMs) <= ageMs;

/**
 * Returns how old the sign-in may be when a user allows an app these scopes. Somebody else may use
 * the browser by now, and the grant outlives the session.
 */
export const maxAgeMsOf = (scopes: readonly string[]): number =>
  scopes.includes(BACKEND_SCOPE) ? RECENT_LOGIN_MS : Infinity;

/**
 * Throws Problem 401 with the challenge of RFC 9470 §3 if the console calls and its user has not
 * typed the password in any browser for 15 minutes: somebody else may sit there by now.
 */
export async function checkRecentLogin(
  { sub, clientId }: Pick<Caller, "sub" | "clientId">,
  { database, now }: Pick<Services, "database" | "now">,
): Promise<void> {
  const nowMs = now();
  if (clientId !== CONSOLE_APP) return;
  if (await hasSession(database, sub, nowMs, RECENT_LOGIN_MS)) return;
  const error = "insufficient_user_authentication";
  const detail = "Type your password again to do this; that is enough for 15 minutes.";
  throw new Problem(401, error, detail, { challenge: { error, maxAgeSeconds: MAX_AGE_SECONDS } });
}

/** A record with scopes, such as a user or an app. A disabled record counts as having none. */
interface Holder {
  readonly scopes: readonly string[];
  readonly status?: "active" | "disabled";
}

const hasBackend = ({ scopes, status }: Holder) =>
  status !== "disabled" && scopes.includes(BACKEND_SCOPE);

/**
 * The same check if a record gains scope `backend`. Without `before`, also if a record that has it
 * gets another way in: a new secret, key, owner, grant or address, or other keys of an issuer.
 */
export async function checkGivesBackend(
  caller: Parameters<typeof checkRecentLogin>[0],
  after: Holder,
  before: Holder | undefined,
  services: Parameters<typeof checkRecentLogin>[1],
): Promise<void> {
  const isGiven = hasBackend(after) && !(before && hasBackend(before));
  if (isGiven) await checkRecentLogin(caller, services);
}
