import { newId } from "../base/id.ts";
import { described, TEXT } from "../base/shape.ts";
import {
  type Issuer,
  IssuerChange,
  IssuerRecord,
  type Principal,
  PrincipalChange,
  PrincipalRecord,
} from "../oauth/issuer.ts";
import type { Database } from "../database/database.ts";
import type { RowOf } from "../database/rows.ts";
import { listOf, sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";
import { writeInSteps } from "./batch.ts";
import { where } from "./list.ts";
import { tableOf } from "./table.ts";

/** The issuers. Removing one removes its principals: end their subscriptions in the same batch. */
export const ISSUERS = tableOf<Issuer>(sql`issuers`, IssuerRecord, IssuerChange);

/** The principals. When one is removed, end its subscriptions in the same batch. */
export const PRINCIPALS = {
  ...tableOf<Principal>(sql`principals`, PrincipalRecord, PrincipalChange),
  filters: {
    issuer: where(described("The issuer's id or URL.", TEXT), (name) =>
      sql`issuer = (SELECT id FROM issuers WHERE ${name} IN (id, issuer))`),
  },
  indexes: { issuer: [] },
} as const;

/** Lists the issuers whose tokens are accepted, oldest first. */
export async function listActiveIssuers({ query }: Pick<Database, "query">): Promise<Issuer[]> {
  const select = sql`SELECT ${ISSUERS.columns} FROM issuers WHERE status = 'active' ORDER BY id`;
  return (await query<RowOf<Issuer>>(select)).map(ISSUERS.toItem);
}

/**
 * Removes most principals of an issuer that is about to be removed, if there are very many, in
 * steps for which no other write waits long. Disables the issuer first, so that none comes back.
 */
export async function deletePrincipalsOf(database: Database, issuer: string): Promise<void> {
  const where = sql`issuer = ${issuer}`;
  const disable = sql`UPDATE issuers SET status = 'disabled' WHERE id = ${issuer}`;
  const rows = { table: sql`principals`, key: sql`id`, where, after: "" };
  await writeInSteps(database, rows, (ids) =>
    [disable, sql`DELETE FROM principals WHERE id IN ${listOf(ids)}`]);
}

/** Finds or makes the principal of an issuer's `sub`; undefined if the issuer has ended. */
export async function obtainPrincipal(
  database: Database,
  issuer: string,
  subject: string,
  nowMs: number,
): Promise<Principal | undefined> {
  const isIt = sql`issuer = ${issuer} AND subject = ${subject}`;
  const find = () => PRINCIPALS.findWhere(database, isIt);
  const known = await find();
  if (known) return known;
  await database.write([
    sql`INSERT INTO principals (id, issuer, subject, status, createdAtMs)
      SELECT ${newId("x", nowMs)}, id, ${subject}, 'active', ${nowMs} FROM issuers
      WHERE id = ${issuer} AND status = 'active' ON CONFLICT (issuer, subject) DO NOTHING`,
  ]);
  return await afterWrite(find());
}
