import { newId } from "../base/id.ts";
import type { Issuer, Principal } from "../oauth/issuer.ts";
import { type Database, type Page, type Pagination, valueIf } from "../database/database.ts";
import { findRow, parseScopes, queryPage, type RowOf } from "../database/rows.ts";
import { andIs, listOf, sql, type Sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";
import { writeInSteps } from "./batch.ts";

/** What of an issuer a change may replace, in the order of `changeable`. */
const CHANGEABLE = sql`audience, scopes, scopeClaim, jwksUri, jwtType, status`;
const SELECT = sql`SELECT id, issuer, ${CHANGEABLE}, createdAtMs FROM issuers`;
const SELECT_PRINCIPAL = sql`SELECT id, issuer, subject, status, createdAtMs FROM principals`;

function changeable({ audience, scopes, scopeClaim, jwksUri, jwtType, status }: Issuer): Sql {
  return sql`${audience}, ${JSON.stringify(scopes)}, ${scopeClaim}, ${jwksUri}, ${jwtType ? 1 : 0},
    ${status}`;
}

function toIssuer(row: RowOf<Issuer>): Issuer {
  return { ...parseScopes(row), jwtType: row.jwtType === 1 };
}

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

/**
 * Removes most principals of an issuer that is about to be removed, where they are very many: in
 * steps for which no other write waits long. It is disabled before that, so that none comes back.
 */
export async function deletePrincipalsOf(database: Database, issuer: string): Promise<void> {
  const where = sql`issuer = ${issuer}`;
  const disable = sql`UPDATE issuers SET status = 'disabled' WHERE id = ${issuer}`;
  const rows = { table: sql`principals`, key: sql`id`, where, after: "" };
  await writeInSteps(database, rows, (ids) =>
    [disable, sql`DELETE FROM principals WHERE id IN ${listOf(ids)}`]);
}

/** Removes an issuer with its principals; end their subscriptions in the same batch. */
export function deleteIssuer(id: string): Change {
  return deleteWhere(sql`issuers`, sql`id = ${id}`);
}

export function findPrincipal(database: Database, id: string): Promise<Principal | undefined> {
  return findRow(database, sql`${SELECT_PRINCIPAL} WHERE id = ${id}`);
}

/** Principals, of one issuer or of all, newest first. */
export function listPrincipals(
  database: Database,
  issuer: string | undefined,
  page: Pagination,
): Promise<Page<Principal>> {
  const select = sql`${SELECT_PRINCIPAL} WHERE id < ${page.before}${andIs(sql`issuer`, issuer)}`;
  return queryPage(database, select, page, (principal: Principal) => principal);
}

/** The principal of an issuer's `sub`, made where there is none; undefined if the issuer ended. */
export async function obtainPrincipal(
  database: Database,
  issuer: string,
  subject: string,
  nowMs: number,
): Promise<Principal | undefined> {
  const select = sql`${SELECT_PRINCIPAL} WHERE issuer = ${issuer} AND subject = ${subject}`;
  const find = () => findRow<Principal>(database, select);
  const known = await find();
  if (known) return known;
  await database.write([
    sql`INSERT INTO principals (id, issuer, subject, status, createdAtMs)
      SELECT ${newId("x", nowMs)}, id, ${subject}, 'active', ${nowMs} FROM issuers
      WHERE id = ${issuer} AND status = 'active' ON CONFLICT (issuer, subject) DO NOTHING`,
  ]);
  return await afterWrite(find());
}

/** Disables a principal or lets it in again. */
export function updatePrincipal(id: string, status: Principal["status"]): Change {
  return updateWhere(sql`principals`, sql`status = ${status}`, sql`id = ${id}`);
}

/** Removes a principal; end its subscriptions in the same batch. */
export function deletePrincipal(id: string): Change {
  return deleteWhere(sql`principals`, sql`id = ${id}`);
}
