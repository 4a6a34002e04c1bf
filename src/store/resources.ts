import { type Resource, ResourceChange } from "../oauth/resource.ts";
import type { Database } from "../database/database.ts";
import { findItem } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";
import { columnsOf } from "./columns.ts";

const CHANGED = columnsOf(ResourceChange.members);
const COLUMNS = sql`id, url, createdAtMs, ${CHANGED.names}`;

/** A resource by its id, or by its URL, whether or not that ends in a slash. */
export function findResource(database: Database, key: string) {
  return findItem(database, sql`SELECT ${COLUMNS} FROM resources
    WHERE id = ${key} OR rtrim(url, '/') = rtrim(${key}, '/')`, CHANGED.read<Resource>);
}

export const RESOURCE_LIST = {
  table: sql`resources`,
  columns: COLUMNS,
  filters: {},
  indexes: {},
  toItem: CHANGED.read<Resource>,
} as const;

/** Stores a resource; ConflictError where its URL is taken. */
export function insertResource(resource: Resource): Sql {
  const { id, url, createdAtMs } = resource;
  return sql`INSERT INTO resources (${COLUMNS})
    VALUES (${id}, ${url}, ${createdAtMs}, ${CHANGED.values(resource)})`;
}

/** Gives a resource other scopes; those that its grants lose are left out of their next tokens. */
export function updateResource(id: string, change: Pick<Resource, "scopes">): Change {
  const set = sql`(${CHANGED.names}) = (${CHANGED.values(change)})`;
  return updateWhere(sql`resources`, set, sql`id = ${id}`);
}

/** Removes a resource: no grant for it makes another token, whatever is registered later. */
export function deleteResource(id: string): Change {
  return deleteWhere(sql`resources`, sql`id = ${id}`);
}
