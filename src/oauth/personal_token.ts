/** What a personal token begins with, so that scanners for leaked secrets find it. */
export const PERSONAL_PREFIX = "gpat_";

/** Whether a token says that it is a personal one. */
export function isPersonalToken(token: string): boolean {
  return token.startsWith(PERSONAL_PREFIX);
}
