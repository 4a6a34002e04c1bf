import { newId } from "../base/id.ts";
import type { PasswordHasher } from "../base/password.ts";
import { newPassword } from "../base/secret.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import type { Database } from "../database/database.ts";
import { HAS_NO_USER, hasUsers, insertUser } from "../store/users.ts";

/** The name of the user that the first start creates. */
export const ADMIN = "admin";

/**
 * Creates user `admin` on a database without users. Returns the password if one was generated, to
 * be shown to the operator once; undefined otherwise, also when another process was faster.
 */
export async function ensureFirstUser(
  database: Database,
  hasher: PasswordHasher,
  givenPassword: string | undefined,
  nowMs: number,
): Promise<string | undefined> {
  if (await hasUsers(database)) return undefined;
  const password = givenPassword ?? newPassword();
  const [inserted] = await database.write([insertUser({
    id: newId("u", nowMs),
    username: ADMIN,
    phc: await hasher.hash(password),
    scopes: [BACKEND_SCOPE, CONSUMER_SCOPE],
    createdAtMs: nowMs,
    passwordPrinted: givenPassword === undefined ? 1 : null,
  }, HAS_NO_USER)]);
  return inserted === 1 && givenPassword === undefined ? password : undefined;
}
