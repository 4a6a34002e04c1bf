import { idOf, isId } from "../base/id.ts";
import { described, text } from "../base/shape.ts";

/** The caller of a protected request: the subject of its token, and the app that got the token. */
export interface Caller {
  /** The id of a user or of another issuer's principal; of an app itself, its `client_id`. */
  readonly sub: string;
  readonly kind: "user" | "app" | "principal";
  /** The `client_id` of the token's app, which may be built-in; of a principal, its issuer's id. */
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** The grant that the token comes from; of a principal, its own id. */
  readonly grantId: string;
  /** The token's id; of a personal token, its grant's id, since the grant has no other token. */
  readonly jti: string;
  /** The `iss` of the token, if another issuer made it. */
  readonly issuer?: string;
  readonly expiresAtMs: number;
  /** When this service issued the token, if it is a JWT of its own. */
  readonly issuedAtMs?: number;
  /** The URL of the resource that the token is for, if that is not this service. */
  readonly audience?: string | undefined;
}

/** The built-in app in whose name the login endpoint issues its tokens. */
export const LOGIN_APP = "login";

/** The built-in app in whose name users make personal tokens. */
export const PERSONAL_APP = "personal";

/** The prefix of personal tokens, by which scanners for leaked secrets find them. */
export const PERSONAL_PREFIX = "gpat_";

/** The built-in app of the console and the account, whose code the service serves itself. */
export const CONSOLE_APP = "console";

/** Whether a token of this app comes from the user's own login, by the endpoint or the console. */
export const isOwnLogin = (app: string): boolean => app === LOGIN_APP || app === CONSOLE_APP;

/** These apps are in no table: a grant to one depends on its user alone. */
export const BUILT_IN_APPS = [LOGIN_APP, PERSONAL_APP, CONSOLE_APP] as const;
export const isBuiltIn = (app?: string): app is typeof BUILT_IN_APPS[number] =>
  BUILT_IN_APPS.some((each) => each === app);

const ANY_APP = `A client_id, or one of ${BUILT_IN_APPS.join(", ")}.`;
/** The id of an app in a token. */
export const APP = described(ANY_APP, text(
  (id) => isId("a", id) || isBuiltIn(id) ? undefined : ANY_APP.replace("A", "Must be a"),
  { anyOf: [idOf("a").schema, { enum: BUILT_IN_APPS }] },
));

export const BACKEND_SCOPE = "backend";

/** The scope that allows to read the backend; `backend` allows that too. */
export const BACKEND_READ_SCOPE = "backend:read";

/** Whether a scope is one of the backend's, which are granted only if asked for by name. */
export const isOfBackend = (scope: string): boolean =>
  scope === BACKEND_SCOPE || scope === BACKEND_READ_SCOPE;

/** Whether `scopes` include what an operation needs. */
export function covers(scopes: readonly string[], needed: string): boolean {
  return scopes.includes(needed) || isOfBackend(needed) && scopes.includes(BACKEND_SCOPE);
}

/** The scope of the consumer's own resources; new apps and users get it by default. */
export const CONSUMER_SCOPE = "consumer";

/** The scope that a client is advised to request: administering apps have `backend`. */
export function toAskFor(scope: string): string {
  return isOfBackend(scope) ? BACKEND_SCOPE : scope;
}
