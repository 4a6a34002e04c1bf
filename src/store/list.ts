import { idBound } from "../base/id.ts";
import { described, type InferMembers, optional, type Shape, text } from "../base/shape.ts";
import { TIME_MS } from "../base/time.ts";
import { type Database, limitTo, type Page, type Pagination } from "../database/database.ts";
import { findValue, NEWEST, pageOf } from "../database/rows.ts";
import { joinSql, sql, type Sql, sqlText, type SqlValue } from "../database/sql.ts";

/** A parameter of a list: its shape, and which rows a value of it leaves. */
export interface Filter<T = unknown> extends Shape<T | undefined> {
  readonly isOptional: true;
  /** Those for which this holds; `given` is all that the list is asked for. */
  where?(value: T, given: Values): Sql;
  /** Those with ids from the first on, and before the second. */
  range?(value: T): { readonly from?: string; readonly before?: string };
}

export type Filters = Readonly<Record<string, Filter>>;
type Values = Readonly<Record<string, unknown>>;

/** What of a list is asked for, and which part; an index may go on with the status. */
export type Given<F extends Filters> =
  InferMembers<F> & Pagination & { readonly status?: string | undefined };

/** Items with ids, and what lists of them can be narrowed by. */
export interface List<F extends Filters, Row, Item extends { readonly id: string }> {
  readonly table: Sql;
  readonly columns: Sql;
  /** Holds for every row that is ever listed. */
  readonly always?: Sql;
  readonly filters: F;
  /**
   * The filters that have an index, which goes on with the id; the first of those given is used.
   * Where the status stands between the two: all that it may be.
   */
  readonly indexes: { readonly [Name in keyof F]?: readonly string[] };
  /** The statement that is run, made of the one that selects the rows. */
  shown?(rows: Sql): Sql;
  toItem(row: Row): Item;
}

/** Rows that are items as they are. */
export const asItem = <Item>() => (item: Item): Item => item;

/** A filter by what holds for a row. */
export function where<T>(shape: Shape<T>, condition: Required<Filter<T>>["where"]): Filter<T> {
  return { ...optional(shape), where: condition };
}

/** A filter by the value of a column. */
export function is<T extends SqlValue>(column: Sql, shape: Shape<T>): Filter<T> {
  return where(shape, (value) => sql`${column} = ${value}`);
}

/** Filters by when an item was made, which its id says. */
export function madeBetween(kind: string, what: string) {
  const at = (meaning: string, end: "from" | "before"): Filter<number> => ({
    ...optional(described(`${what} ${meaning}.`, TIME_MS)),
    range: (timeMs) => ({ [end]: idBound(kind, timeMs) }),
  });
  return { since: at("at that time or later", "from"), until: at("before that time", "before") };
}

const MAX_LENGTH = 200;

/** What is looked for, as it is written. */
export const WANTED = text(
  (value) =>
    [...value].length <= MAX_LENGTH ? undefined : `Must be at most ${MAX_LENGTH} characters.`,
  { maxLength: MAX_LENGTH },
);

/** Holds where a column begins so, ASCII letters in any case; found by a NOCASE index on it. */
export function startsWith(column: Sql, beginning: string): Sql {
  return sql`(${column} >= ${beginning} COLLATE NOCASE
    AND ${column} < ${`${beginning}\u{10ffff}`} COLLATE NOCASE)`;
}

/** So many rows are found by how they begin. */
const FOUND_AT_MOST = 1000;

/** A filter by how a column begins that has such an index; `always` as the list has it. */
export function beginsWith(
  table: Sql,
  column: Sql,
  what: string,
  toText = (text: string) => text,
  always = sql`TRUE`,
) {
  const meaning = `How ${what} begins; of more than ${FOUND_AT_MOST} the first by that.`;
  return where(described(meaning, WANTED), (beginning, { owner }) => {
    const begins = startsWith(column, toText(beginning));
    // One owner has few, which must not be missing because others have very many that begin so.
    return owner !== undefined ? begins : sql`id IN (SELECT id FROM ${table} WHERE ${begins}
      AND ${always} ORDER BY ${column} COLLATE NOCASE ${limitTo(FOUND_AT_MOST)})`;
  });
}

/** What the given filters come to: between which ids the rows are, and what holds for them. */
export function narrow<F extends Filters>(filters: F, given: InferMembers<F>) {
  const values: Values = given;
  const used = Object.entries<Filter>(filters).map(([name, filter]) =>
    ({ name, filter, value: values[name] })
  ).filter(({ value }) => value !== undefined);
  const ranges = used.map(({ filter, value }) => filter.range?.(value) ?? {});
  return {
    from: ranges.flatMap(({ from }) => from ?? []).sort().at(-1) ?? "",
    before: ranges.flatMap(({ before }) => before ?? []).sort()[0],
    conditions: used.flatMap(({ name, filter, value }) => {
      const condition = filter.where?.(value, values);
      return condition ? { name, condition } : [];
    }),
  };
}

/**
 * For a part of a list so many rows are looked at, where not all that are given has an index. So
 * it may have fewer items than were asked for, or none, and a next part all the same.
 */
const LOOKED_AT = 5000;

/** A part of a list, newest first. */
export async function listPart<F extends Filters, Row, Item extends { readonly id: string }>(
  database: Database,
  list: List<F, Row, Item>,
  given: Given<F>,
): Promise<Page<Item>> {
  const { table, columns, always = sql`TRUE`, filters, indexes, shown = (rows) => rows } = list;
  const { limit, cursor = NEWEST }: Pagination = given;
  const { from, before = cursor, conditions } = narrow(filters, given);
  const by = Object.keys(indexes).find((index) => conditions.some(({ name }) => name === index));
  const statuses = by === undefined ? [] : indexes[by] ?? [];
  const index = conditions.find(({ name }) => name === by)?.condition ?? always;
  // With the plus no other index is used.
  const rest = joinSql(
    conditions.filter(({ name }) => name !== by && (name !== "status" || statuses.length === 0))
      .map(({ condition }) => sql` AND +${condition}`),
    "",
  );
  const ways = statuses.filter((status) => status === (given.status ?? status))
    .map((status) => sql` AND status = ${sqlText(status)}`);
  // One bound alone: of two SQLite searches by one, and reads all that the other leaves out.
  const end = before < cursor ? before : cursor;
  const select = (what: Sql, first: string, more: Sql) => {
    const since = first === "" ? sql`` : sql` AND id >= ${first}`;
    return joinSql((ways.length > 0 ? ways : [sql``]).map((way) =>
      sql`SELECT ${what} FROM ${table}
        WHERE ${index}${way} AND ${always} AND id < ${end}${since}${more}`
    ), " UNION ALL ");
  };
  const edge = rest.sql === "" ? undefined : await findValue<string>(
    database,
    sql`${select(sql`id`, from, sql``)} ORDER BY id DESC LIMIT 1 OFFSET ${LOOKED_AT - 1}`,
  );
  const rows = sql`${select(columns, edge ?? from, rest)}
    ORDER BY id DESC ${limitTo(limit + 1)}`;
  const { items, next } = pageOf((await database.query<Row>(shown(rows))).map(list.toItem), given);
  return { items, next: next ?? edge };
}
