import { GRANT_TYPES } from "./grant_type.ts";

/** The sets of rules that GATEPOST_PROFILE chooses from; 2.1 is that of draft-ietf-oauth-v2-1. */
export const PROFILES = ["none", "2.1"] as const;

export type Profile = typeof PROFILES[number];

/** Whether an authorize request needs a code_challenge: a public app has no other proof. */
export function needsPkce(app: { type: string; requirePkce: boolean }, profile: Profile): boolean {
  return profile === "2.1" || app.requirePkce || app.type === "public"; // RFC 9700 §2.1.1
}

/** Whether an app must list redirect URIs, and does not (RFC 9700 §2.1). */
export function lacksRedirectUris(app: { redirectUris: readonly string[] }, profile?: Profile) {
  return profile === "2.1" && app.redirectUris.length === 0;
}

/** The grants of the token endpoint. */
export function grantTypesOf(profile: Profile) {
  return GRANT_TYPES.filter((type) => type !== "password" || profile === "none");
}
