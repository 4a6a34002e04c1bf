import { idTimeMs } from "../base/id.ts";
import { type Database, limitTo } from "../database/database.ts";
import { parseScopes, type RowOf } from "../database/rows.ts";
import { sql } from "../database/sql.ts";
import { type Grant, notBeforeOf } from "./grants.ts";

/** A grant by which somebody can act for its user, as that user sees it. */
export interface OwnGrant extends Pick<Grant, "id" | "app" | "scopes"> {
  /** Of the personal token or the app; none for a login. */
  readonly name: string | null;
  readonly untilMs: number;
  readonly lastUsedAtMs: number | null;
}

/** More than a user can have (grant_limit.ts, personal_tokens.ts). */
const LISTED = 1_000;

/** Every live grant of a user, newest first; one whose only token was revoked alone is not. */
export async function listOwnGrants(
  database: Database,
  user: string,
  nowMs: number,
): Promise<OwnGrant[]> {
  type Row = RowOf<OwnGrant> & { readonly notBeforeMs: number | null };
  const rows = await database.query<Row>(
    sql`SELECT g.id, g.app, g.scopes, g.untilMs, ifnull(g.name, a.name) AS name,
        nullif(max(ifnull(g.lastUsedAtMs, 0), ifnull(g.rotatedAtMs, 0)), 0) AS lastUsedAtMs,
        ${notBeforeOf(sql`g.user`, sql`g.app`)} AS notBeforeMs
      FROM grants g INDEXED BY grants_of_user LEFT JOIN apps a ON a.id = g.app
      WHERE g.user = ${user} AND g.revokedAtMs IS NULL AND g.untilMs > ${nowMs}
        -- An access token's jti begins with the id of its grant, and goes on in hexadecimal.
        AND NOT (g.refreshUntilMs = 0 AND EXISTS (SELECT 1 FROM revocations r
          WHERE r.target > g.id AND r.target < g.id || 'g'))
      ORDER BY g.id DESC ${limitTo(LISTED)}`,
  );
  return rows
    .filter(({ id, notBeforeMs }) => notBeforeMs !== null && notBeforeMs < idTimeMs(id))
    .map(({ notBeforeMs, ...row }) => parseScopes(row));
}
