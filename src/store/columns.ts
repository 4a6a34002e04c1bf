import { fieldName, type FieldName } from "../base/fields.ts";
import type { Members, Schema } from "../base/shape.ts";
import type { RowOf } from "../database/rows.ts";
import { joinSql, sql, type Sql, type SqlValue } from "../database/sql.ts";

/** The fields of members, by which their columns are named. */
type Fields<M, Value> = { readonly [N in keyof M & string as FieldName<N>]: Value };

/**
 * The columns of what has such members, one for each: lists and objects are stored as JSON, flags
 * as 0 and 1.
 */
export function columnsOf<const M extends Members>(members: M) {
  const columns = Object.entries(members).map(([member, { schema }]) =>
    ({ name: fieldName(member), read: readerOf(schema) })
  );
  const pairsOf = (item: object) => {
    const given = new Map<string, unknown>(Object.entries(item));
    return columns.map(({ name }) => ({ name, value: given.get(name) }));
  };
  return {
    /** Their names, with commas between. */
    names: raw(columns.map(({ name }) => name).join(", ")),
    /** The values of an item, in the same order; what it has not is NULL. */
    values: (item: Partial<Fields<M, unknown>>): Sql =>
      joinSql(pairsOf(item).map(({ value }) => sql`${toColumn(value)}`), ", "),
    /** `, name = value` for each that is given. */
    changes: (change: Partial<Fields<M, unknown>>): Sql =>
      joinSql(pairsOf(change).filter(({ value }) => value !== undefined)
        .map(({ name, value }) => sql`, ${raw(name)} = ${toColumn(value)}`), ""),
    /** The item that a row with them holds. */
    read<Item>(row: RowOf<Item>): Item {
      const stored = new Map<string, unknown>(Object.entries(row));
      const entries = columns.map(({ name, read }) => [name, read(stored.get(name))]);
      return { ...row, ...Object.fromEntries(entries) } as Item;
    },
  };
}

const raw = (text: string): Sql => ({ sql: text, params: [] });

/** A value as its column has it. */
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
