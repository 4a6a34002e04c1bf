import { idOf, isId } from "../base/id.ts";
import { described, text } from "../base/shape.ts";

/** Who a token speaks for, and through which app: the caller of one protected request. */
export interface Caller {
  /** The id of a user or of another issuer's principal; the `client_id` of an app by itself. */
  readonly sub: string;
  readonly kind: "user" | "app" | "principal";
  /** The `client_id` of the token's app, or of a built-in one; of a principal its issuer's id. */
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** The authorization that the token comes from; a principal is its own. */
  readonly grantId: string;
  /** The token's own id; of a personal token, which is all that its grant has, the grant's. */
  readonly jti: string;
  /** Another one that the token is of, as `iss` names it. */
  readonly issuer?: string;
  readonly expiresAtMs: number;
  /** When this service signed it, where it is a JWT of ours. */
  readonly issuedAtMs?: number;
  /** The URL of the resource that it is for, where that is not this service. */
  readonly audience?: string | undefined;
}

/** The built-in app in whose name the login endpoint issues its tokens. */
export const LOGIN_APP = "login";

/** The built-in app in whose name users make personal tokens. */
export const PERSONAL_APP = "personal";

/** What those begin with, so that scanners for leaked secrets find them. */
export const PERSONAL_PREFIX = "gpat_";

/** The built-in app of the console and the account, whose code the service serves itself. */
export const CONSOLE_APP = "console";

/** Whether a token of this app is its user's own login, there or in the console. */
export const isOwnLogin = (app: string): boolean => app === LOGIN_APP || app === CONSOLE_APP;

/** No such app is in the table of apps: a grant of theirs depends on its user alone. */
export const BUILT_IN_APPS = [LOGIN_APP, PERSONAL_APP, CONSOLE_APP] as const;
export const isBuiltIn = (app?: string): app is typeof BUILT_IN_APPS[number] =>
  BUILT_IN_APPS.some((each) => each === app);

const ANY_APP = `A client_id, or one of ${BUILT_IN_APPS.join(", ")}.`;
/** An app as tokens name it. */
export const APP = described(ANY_APP, text(
  (id) => isId("a", id) || isBuiltIn(id) ? undefined : ANY_APP.replace("A", "Must be a"),
  { anyOf: [idOf("a").schema, { enum: BUILT_IN_APPS }] },
));

export const BACKEND_SCOPE = "backend";

/** The scope that opens what of the backend is only read; `backend` opens it too. */
export const BACKEND_READ_SCOPE = "backend:read";

/** Whether a scope is one of those: granted only by its name, and where the user sees it. */
export const isOfBackend = (scope: string): boolean =>
  scope === BACKEND_SCOPE || scope === BACKEND_READ_SCOPE;

/** Whether these scopes open what needs a scope. */
export function opens(scopes: readonly string[], needed: string): boolean {
  return scopes.includes(needed) || isOfBackend(needed) && scopes.includes(BACKEND_SCOPE);
}

/** The scope of the consumer's own resources, and what a new app or user gets. */
export const CONSUMER_SCOPE = "consumer";

/** What a client is told to ask for: apps that administer have `backend`, which opens both. */
export function toAskFor(scope: string): string {
  return isOfBackend(scope) ? BACKEND_SCOPE : scope;
}
