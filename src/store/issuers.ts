import { idOf, newId } from "../base/id.ts";
import { described } from "../base/shape.ts";
import { type Issuer, IssuerChange, type Principal } from "../oauth/issuer.ts";
import type { Database } from "../database/database.ts";
import { findItem, findRow, type RowOf } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";
import { writeInSteps } from "./batch.ts";
import { columnsOf } from "./columns.ts";
import { asItem, is } from "./list.ts";

/** What of an issuer a change may replace. */
const CHANGED = columnsOf(IssuerChange.members);
const COLUMNS = sql`id, issuer, ${CHANGED.names}, createdAtMs`;
const SELECT = sql`SELECT ${COLUMNS} FROM issuers`;
const PRINCIPAL_COLUMNS = sql`id, issuer, subject, status, createdAtMs`;
const SELECT_PRINCIPAL = sql`SELECT ${PRINCIPAL_COLUMNS} FROM principals`;

export function findIssuer(database: Database, id: string) {
  return findItem(database, sql`${SELECT} WHERE id = ${id}`, CHANGED.read<Issuer>);
}

export const ISSUER_LIST = {
  table: sql`issuers`,
  columns: COLUMNS,
  filters: {},
  indexes: {},
  toItem: CHANGED.read<Issuer>,
} as const;

/** Those whose tokens are accepted, oldest first. */
export async function listActiveIssuers({ query }: Pick<Database, "query">): Promise<Issuer[]> {
  return (await query<RowOf<Issuer>>(sql`${SELECT} WHERE status = 'active' ORDER BY id`))
    .map(CHANGED.read<Issuer>);
}

/** Stores an issuer; ConflictError where it is there already. */
export function insertIssuer(issuer: Issuer): Sql {
  return sql`INSERT INTO issuers (id, issuer, ${CHANGED.names}, createdAtMs)
    VALUES (${issuer.id}, ${issuer.issuer}, ${CHANGED.values(issuer)}, ${issuer.createdAtMs})`;
}

/** Stores a changed issuer; ConflictError, for the whole batch, where it is not as `before` now. */
export function updateIssuer(before: Issuer, after: Issuer): Change {
  const replace = CHANGED.replace(before, after, sql`issuer`, after.issuer);
  return updateWhere(sql`issuers`, replace, sql`id = ${after.id}`);
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

export const PRINCIPAL_LIST = {
  table: sql`principals`,
  columns: PRINCIPAL_COLUMNS,
  filters: { issuer: is(sql`issuer`, described("Of this issuer, by its id.", idOf("i"))) },
  indexes: { issuer: [] },
  toItem: asItem<Principal>(),
} as const;

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
