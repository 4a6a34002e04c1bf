import { type Resource, ResourceChange, ResourceRecord } from "../oauth/resource.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { tableOf } from "./table.ts";

/**
 * The registered resources. A scope that a resource loses is left out of its grants' next tokens.
 * Once it is removed, its grants make no more tokens, whatever is registered later.
 */
export const RESOURCES = tableOf<Resource>(sql`resources`, ResourceRecord, ResourceChange);

/** A resource by its id, or by its URL, whether or not that ends in a slash. */
export function findResource(database: Database, key: string) {
  return RESOURCES.findWhere(database, sql`id = ${key} OR rtrim(url, '/') = rtrim(${key}, '/')`);
}
