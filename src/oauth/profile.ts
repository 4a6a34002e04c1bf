import { GRANT_TYPES } from "./grant_type.ts";

/** The values of GATEPOST_PROFILE; 2.1 means the rules of draft-ietf-oauth-v2-1. */
export const PROFILES = ["none", "2.1"] as const;

export type Profile = typeof PROFILES[number];

/** Whether an authorize request needs a code_challenge: a public app has no other proof. */
export function needsPkce(app: { type: string; requirePkce: boolean }, profile: Profile): boolean {
  return profile === "2.1" || app.requirePkce || app.type === "public"; // RFC 9700 §2.1.1
}

/** Whether an app lacks the list of redirect URIs that it must have (RFC 9700 §2.1). */
export function lacksRedirectUris(app: { redirectUris: readonly string[] }, profile?: Profile) {
  return profile === "2.1" && app.redirectUris.length === 0;
}

/** The grants that the token endpoint supports. */
export function grantTypesOf(profile: Profile) {
  return GRANT_TYPES.filter((type) => type !== "password" || profile === "none");
}
