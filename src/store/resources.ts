import type { Resource } from "../oauth/resource.ts";
import type { Database } from "../database/database.ts";
import { findRow, parseScopes, type RowOf } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";

const COLUMNS = sql`id, url, scopes, createdAtMs`;

/** A resource by its id, or by its URL, whether or not that ends in a slash. */
export async function findResource(database: Database, key: string): Promise<Resource | undefined> {
  const row = await findRow<RowOf<Resource>>(database, sql`SELECT ${COLUMNS} FROM resources
    WHERE id = ${key} OR rtrim(url, '/') = rtrim(${key}, '/')`);
  return row && parseScopes(row);
}

/** What lists of resources go by. */
export const RESOURCE_LIST = {
  table: sql`resources`,
  columns: COLUMNS,
  filters: {},
  indexes: {},
  toItem: parseScopes<RowOf<Resource>>,
} as const;

/** Stores a resource; ConflictError where its URL is taken. */
export function insertResource({ id, url, scopes, createdAtMs }: Resource): Sql {
  return sql`INSERT INTO resources (${COLUMNS})
    VALUES (${id}, ${url}, ${JSON.stringify(scopes)}, ${createdAtMs})`;
}

/** Gives a resource other scopes; those that its grants lose are left out of their next tokens. */
export function updateResource(id: string, { scopes }: Pick<Resource, "scopes">): Change {
  const set = sql`scopes = ${JSON.stringify(scopes)}`;
  return updateWhere(sql`resources`, set, sql`id = ${id}`);
}

/** Removes a resource: no grant for it makes another token, whatever is registered later. */
export function deleteResource(id: string): Change {
  return deleteWhere(sql`resources`, sql`id = ${id}`);
}
