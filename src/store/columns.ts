import { fieldName, type FieldName } from "../base/fields.ts";
import type { Members, Schema } from "../base/shape.ts";
import { valueIf } from "../database/database.ts";
import type { RowOf } from "../database/rows.ts";
import { joinSql, sql, type Sql, type SqlValue } from "../database/sql.ts";

/** An item that may have the fields of members; columns bear the same names. */
type Fields<M> = { readonly [N in keyof M & string as FieldName<N>]?: unknown };

/** The columns of members, one for each: lists and objects are JSON, booleans 0 and 1. */
export function columnsOf<const M extends Members>(members: M) {
  const columns = Object.entries(members).map(([member, { schema }]) =>
    ({ name: fieldName(member), read: readerOf(schema) })
  );
  const names: Sql = { sql: columns.map(({ name }) => name).join(", "), params: [] };
  const values = (item: Fields<M>) => {
    const given = new Map<string, unknown>(Object.entries(item));
    return joinSql(columns.map(({ name }) => sql`${toColumn(given.get(name))}`), ", ");
  };
  return {
    /** Their names, with commas between. */
    names,
    /** The values of an item, in the same order; a missing one is NULL. */
    values,
    /**
     * Sets these columns to a changed item's values, and another NOT NULL column to `value`:
     * ConflictError if the row is no longer as `before`.
     */
    replace: (before: Fields<M>, after: Fields<M>, column: Sql, value: Sql | SqlValue): Sql =>
      sql`(${names}) = (${values(after)}),
        ${column} = ${valueIf(sql`(${names}) IS (${values(before)})`, value)}`,
    /** Makes the item of a row with these columns. */
    read<Item>(row: RowOf<Item>): Item {
      const stored = new Map<string, unknown>(Object.entries(row));
      const entries = columns.map(({ name, read }) => [name, read(stored.get(name))]);
      return { ...row, ...Object.fromEntries(entries) } as Item;
    },
  };
}

/** Returns a value as its column stores it. */
function toColumn(value: unknown = null): SqlValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return value as SqlValue;
}

function readerOf({ anyOf, type }: Schema): (stored: unknown) => unknown {
  const kind = Array.isArray(anyOf) ? anyOf[0].type : type;
  if (kind === "boolean") return (stored) => stored === 1;
  return kind === "array" || kind === "object" ? (stored) => JSON.parse(String(stored))
    : (stored) => stored;
}
