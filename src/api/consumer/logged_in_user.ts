import { Problem } from "../../base/problem.ts";
import { type Caller, LOGIN_APP } from "../../oauth/principal.ts";

/**
 * The user of a login token; throws Problem 403: neither an app nor a personal token may learn of
 * others, end them, or make one that outlives it.
 */
export function loggedInUser({ sub, clientId }: Caller): string {
  if (clientId === LOGIN_APP) return sub;
  throw new Problem(403, "login_only", "Only a token of the login endpoint may do this.");
}
