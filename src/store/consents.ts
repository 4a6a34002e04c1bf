import { parseScope } from "../oauth/scope.ts";
import { type Database, sql, type Statement } from "./database.ts";

/** The scopes that a user has allowed an app before. */
export async function findConsentedScopes(
  database: Database,
  user: string,
  app: string,
): Promise<readonly string[]> {
  const rows = await database.query<{ scope: string }>(
    "SELECT scope FROM consents WHERE user = ?1 AND app = ?2",
    [user, app],
  );
  return parseScope(rows[0]?.scope ?? "") ?? [];
}

/** Remembers what a user allows an app, in the place of what was remembered before. */
export function putConsent(user: string, app: string, scopes: readonly string[]): Statement {
  return sql(
    `INSERT INTO consents (user, app, scope) VALUES (?1, ?2, ?3)
     ON CONFLICT (user, app) DO UPDATE SET scope = excluded.scope`,
    user,
    app,
    scopes.join(" "),
  );
}

/** Forgets what a user allowed an app. */
export function deleteConsent(user: string, app: string): Statement {
  return sql("DELETE FROM consents WHERE user = ?1 AND app = ?2", user, app);
}
