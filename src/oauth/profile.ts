import { GRANT_TYPES, type GrantType } from "./grant_type.ts";

/** The sets of rules that GATEPOST_PROFILE chooses from; 2.1 is that of draft-ietf-oauth-v2-1. */
export const PROFILES = ["none", "2.1"] as const;

export type Profile = typeof PROFILES[number];

/** Whether an authorize request needs a code_challenge: a public app has no other proof. */
export function needsPkce(
  app: { readonly type: "confidential" | "public"; readonly requirePkce: boolean },
  profile: Profile,
): boolean {
  return profile === "2.1" || app.requirePkce || app.type === "public"; // RFC 9700 §2.1.1
}

/** Whether an app lists no redirect URI, though the profile compares nothing but listed ones. */
export function lacksRedirectUris(
  { redirectUris }: { readonly redirectUris: readonly string[] },
  profile: Profile,
): boolean {
  return profile === "2.1" && redirectUris.length === 0; // RFC 9700 §2.1
}

/** The grants of the token endpoint. */
export function grantTypesOf(profile: Profile): readonly GrantType[] {
  return profile === "none" ? GRANT_TYPES : GRANT_TYPES.filter((type) => type !== "password");
}
