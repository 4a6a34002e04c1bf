/** The grant of a device without a browser (RFC 8628 §3.4). */
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** The grants of the token endpoint (RFC 6749 §1.3, §1.5). */
export const GRANT_TYPES = [
  "authorization_code",
  "refresh_token",
  "client_credentials",
  "password",
  DEVICE_GRANT,
] as const;

export type GrantType = typeof GRANT_TYPES[number];
