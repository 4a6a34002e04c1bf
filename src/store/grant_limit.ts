import { insertAudit } from "./audit.ts";
import { AT_MOST, BATCH } from "./batch.ts";
import { type Database, UnavailableError } from "../database/database.ts";
import { findRow, hasRow } from "../database/rows.ts";
import { andIs, sql, type Sql } from "../database/sql.ts";
import { CONSOLE_APP, isBuiltIn, PERSONAL_APP } from "../oauth/principal.ts";
import type { Revocations } from "./revocations.ts";

/** How many grants of a user are valid at once: through one app, and in all. */
const GRANTS_OF_APP = 100;
const GRANTS_OF_USER = 500;
/** How many refresh tokens an app that acts for itself keeps past their access tokens. */
const TOKENS_OF_APP = 500;

/**
 * After a new grant is stored, ends the user's oldest grants beyond the limits, records that, and
 * refreshes `revocations`. Grants that expired or ended with their app count until the purge, so
 * that no row is read to count. Personal tokens have their own limit (personal_tokens.ts).
 */
export async function endExcessGrants(
  database: Database,
  user: string,
  app: string,
  nowMs: number,
  revocations?: Revocations,
): Promise<void> {
  try {
    // Hardly any user has so many: a read finds out, so that the writer need not look for excess.
    const isMany = sql`SELECT 1 FROM grants INDEXED BY grants_of_user
      WHERE user = ${user} AND revokedAtMs IS NULL LIMIT 1 OFFSET ${GRANTS_OF_APP}`;
    if (!await hasRow(database, isMany)) return;
    const [, ofApp, ofUser] = await database.write(endOldest(user, app, nowMs));
    if (ofApp !== 0 || ofUser !== 0) await revocations?.refresh();
  } catch (error) {
    // The new grant is stored all the same, and the user's next grant ends what is left.
    if (!(error instanceof UnavailableError)) throw error;
  }
}

/**
 * Makes the statements that record the end of grants beyond the limits, and end them: first those
 * of the app, then those of all that are left.
 */
export function endOldest(user: string, app: string, nowMs: number): Sql[] {
  const past = (limit: number, ofApp: Sql) =>
    sql`SELECT * FROM (SELECT id FROM grants INDEXED BY grants_of_user
      WHERE user = ${user}${ofApp} AND revokedAtMs IS NULL
      ORDER BY id DESC ${AT_MOST} OFFSET ${limit})`;
  const ofApp = past(GRANTS_OF_APP, andIs(sql`app`, app));
  const ofUser = past(GRANTS_OF_USER, sql` AND app <> ${PERSONAL_APP}`);
  const end = (ids: Sql) => sql`UPDATE grants SET revokedAtMs = ${nowMs} WHERE id IN (${ids})`;
  const actor = isBuiltIn(app) ? user : app;
  const entry = { actor, action: "grant.limit", target: user, address: null };
  // A console leaves a grant behind each time that it is reloaded, which is not worth an entry.
  const isAudited = app === CONSOLE_APP ? sql`FALSE` : sql`EXISTS (${ofApp} UNION ALL ${ofUser})`;
  return [insertAudit(entry, nowMs, isAudited), end(ofApp), end(ofUser)];
}

const IS_OWN = sql`user IS NULL AND refresh IS NOT NULL`; // the condition of the index

/**
 * Removes the oldest refresh tokens of apps that act for themselves and have too many, once their
 * access tokens have expired. Such an app gets new ones by its secret (RFC 6749 §4.4.3).
 */
export async function dropExcessRefreshTokens(
  database: Database,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let app = ""; !signal.aborted;) {
    // The next app that acts for itself, and the newest of its grants that are too many.
    const select = sql`SELECT own.app, (SELECT id FROM grants WHERE app = own.app AND ${IS_OWN}
        ORDER BY id DESC LIMIT 1 OFFSET ${TOKENS_OF_APP}) AS last
      FROM (SELECT app FROM grants WHERE app > ${app} AND ${IS_OWN} ORDER BY app LIMIT 1) own`;
    const next = await findRow<{ app: string; last: string | null }>(database, select);
    if (!next) return;
    const { last } = next;
    app = next.app;
    const drop = sql`UPDATE grants SET refresh = NULL, previous = NULL, refreshUntilMs = 0
      WHERE accessUntilMs <= ${nowMs} AND id IN (SELECT id FROM grants
        WHERE app = ${app} AND ${IS_OWN} AND id <= ${last} ORDER BY id ${AT_MOST})`;
    for (let dropped = last === null ? 0 : BATCH; dropped > 0 && !signal.aborted;) {
      [dropped = 0] = await database.write([drop]);
    }
    await new Promise((resolve) => setImmediate(resolve)); // so that other work can run
  }
}
