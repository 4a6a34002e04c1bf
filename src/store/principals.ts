import { newId } from "../base/id.ts";
import type { Principal } from "../oauth/issuer_principal.ts";
import type { Database, Page, Pagination } from "../database/database.ts";
import { findRow, queryPage } from "../database/rows.ts";
import { andIs, sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";

const SELECT = sql`SELECT id, issuer, subject, status, createdAtMs FROM principals`;

/** A principal by id. */
export function findPrincipal(database: Database, id: string): Promise<Principal | undefined> {
  return findRow(database, sql`${SELECT} WHERE id = ${id}`);
}

/** Principals, of one issuer or of all, newest first. */
export function listPrincipals(
  database: Database,
  issuer: string | undefined,
  page: Pagination,
): Promise<Page<Principal>> {
  const select = sql`${SELECT} WHERE id < ${page.before}${andIs(sql`issuer`, issuer)}`;
  return queryPage(database, select, page, (principal: Principal) => principal);
}

/** The principal of an issuer's `sub`, made where there is none; undefined if the issuer ended. */
export async function obtainPrincipal(
  database: Database,
  issuer: string,
  subject: string,
  nowMs: number,
): Promise<Principal | undefined> {
  const find = () =>
    findRow<Principal>(database, sql`${SELECT} WHERE issuer = ${issuer} AND subject = ${subject}`);
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
