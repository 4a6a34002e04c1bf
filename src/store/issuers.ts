import type { Issuer } from "../oauth/issuer.ts";
import { type Database, type Page, type Pagination, valueIf } from "../database/database.ts";
import { findRow, parseScopes, queryPage, type RowOf } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";

/** What of an issuer a change may replace, in the order of `changeable`. */
const CHANGEABLE = sql`audience, scopes, scopeClaim, jwksUri, jwtType, status`;
const SELECT = sql`SELECT id, issuer, ${CHANGEABLE}, createdAtMs FROM issuers`;

function changeable({ audience, scopes, scopeClaim, jwksUri, jwtType, status }: Issuer): Sql {
  return sql`${audience}, ${JSON.stringify(scopes)}, ${scopeClaim}, ${jwksUri}, ${jwtType ? 1 : 0},
    ${status}`;
}

function toIssuer(row: RowOf<Issuer>): Issuer {
  return { ...parseScopes(row), jwtType: row.jwtType === 1 };
}

/** An issuer by id. */
export async function findIssuer(database: Database, id: string): Promise<Issuer | undefined> {
  const row = await findRow<RowOf<Issuer>>(database, sql`${SELECT} WHERE id = ${id}`);
  return row && toIssuer(row);
}

/** Issuers, newest first. */
export function listIssuers(database: Database, page: Pagination): Promise<Page<Issuer>> {
  return queryPage(database, sql`${SELECT} WHERE id < ${page.before}`, page, toIssuer);
}

/** Those whose tokens are accepted, oldest first. */
export async function listActiveIssuers({ query }: Pick<Database, "query">): Promise<Issuer[]> {
  return (await query<RowOf<Issuer>>(sql`${SELECT} WHERE status = 'active' ORDER BY id`))
    .map(toIssuer);
}

/** Stores an issuer; ConflictError where it is there already. */
export function insertIssuer(issuer: Issuer): Sql {
  return sql`INSERT INTO issuers (id, issuer, ${CHANGEABLE}, createdAtMs)
    VALUES (${issuer.id}, ${issuer.issuer}, ${changeable(issuer)}, ${issuer.createdAtMs})`;
}

/** Stores a changed issuer; ConflictError, for the whole batch, where it is not as `before` now. */
export function updateIssuer(before: Issuer, after: Issuer): Change {
  const isUnchanged = sql`(${CHANGEABLE}) IS (${changeable(before)})`;
  return updateWhere(sql`issuers`, sql`(${CHANGEABLE}) = (${changeable(after)}),
    issuer = ${valueIf(isUnchanged, after.issuer)}`, sql`id = ${after.id}`);
}

/** Removes an issuer with its principals; end their subscriptions in the same batch. */
export function deleteIssuer(id: string): Change {
  return deleteWhere(sql`issuers`, sql`id = ${id}`);
}
