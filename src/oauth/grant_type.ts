/** The four grants of the token endpoint (RFC 6749 §1.3, §1.5). */
export const GRANT_TYPES = [
  "authorization_code",
  "refresh_token",
  "client_credentials",
  "password",
] as const;

/** The value of `grant_type`. */
export type GrantType = typeof GRANT_TYPES[number];
