import type { Members, ObjectShape } from "../base/shape.ts";
import type { Database } from "../database/database.ts";
import { findItem } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, deleteWhere, updateWhere } from "./audit.ts";
import { columnsOf } from "./columns.ts";

/** A record that is stored as it is shown. */
type Stored = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly createdAtMs: number;
};

/** A table and list with a column for each member of `record`; those of `change` may change. */
export function tableOf<Item extends Stored>(
  table: Sql,
  record: ObjectShape<Members>,
  change: ObjectShape<Members>,
) {
  const { names: columns, values, read } = columnsOf(record.members);
  const changed = columnsOf(change.members);
  const toItem = read<Item>;
  const findWhere = (database: Database, where: Sql) =>
    findItem(database, sql`SELECT ${columns} FROM ${table} WHERE ${where}`, toItem);
  return {
    table,
    columns,
    filters: {},
    indexes: {},
    toItem,
    findWhere,
    find: (database: Database, id: string) => findWhere(database, sql`id = ${id}`),
    /** Stores a new item; ConflictError if a value that must be unique exists already. */
    insert: (item: Item): Sql => sql`INSERT INTO ${table} (${columns}) VALUES (${values(item)})`,
    /** Stores a changed item; ConflictError for the whole batch if it is no longer as `before`. */
    update(before: Item, after: Item): Change {
      const replace = changed.replace(before, after, sql`createdAtMs`, after.createdAtMs);
      return updateWhere(table, replace, sql`id = ${after.id}`);
    },
    remove: (id: string): Change => deleteWhere(table, sql`id = ${id}`),
  } as const;
}
