/** Who a token speaks for, and through which app: the caller of one protected request. */
export interface Caller {
  /** The user's id, or the `client_id` of an app acting for itself. */
  readonly sub: string;
  readonly kind: "user" | "app";
  /** The `client_id` of the app the token was issued to; `login` for the login endpoint. */
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** The authorization that the token comes from. */
  readonly grantId: string;
  /** The token's own id. */
  readonly jti: string;
  readonly expiresAtMs: number;
}

/** The built-in app in whose name the login endpoint issues its tokens. */
export const LOGIN_APP = "login";

/** The scope that opens the backend; never granted unless it is asked for by name. */
export const BACKEND_SCOPE = "backend";

/** The scope of the consumer's own resources, and what a new app or user gets. */
export const CONSUMER_SCOPE = "consumer";
