import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { Accounts } from "../../store/accounts.ts";

/**
 * What is left of granted scopes once those that the app or the user has lost since are taken away.
 * Throws OAuthError `invalid_grant` for a disabled user, `invalid_scope` where nothing is left.
 */
export async function currentScopes(
  granted: readonly string[],
  userId: string | null,
  app: App,
  accounts: Accounts,
): Promise<string[]> {
  const user = userId === null ? undefined : await accounts.findUser(userId);
  if (userId !== null && user?.status !== "active") {
    throw new OAuthError("invalid_grant", "The grant has ended.");
  }
  const scopes = granted.filter((name) =>
    app.scopes.includes(name) && (user === undefined || user.scopes.includes(name))
  );
  if (scopes.length === 0) {
    throw new OAuthError("invalid_scope", "Nothing is left of the scopes that were granted.");
  }
  return scopes;
}
