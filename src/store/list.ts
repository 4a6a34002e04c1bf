import { idBound } from "../base/id.ts";
import { described, type InferMembers, optional, type Shape, text } from "../base/shape.ts";
import { TIME_MS } from "../base/time.ts";
import { type Database, limitTo, type Page, type Pagination } from "../database/database.ts";
import { findValue, NEWEST, pageOf } from "../database/rows.ts";
import { joinSql, sql, type Sql, sqlText, type SqlValue } from "../database/sql.ts";

/** A filter parameter of a list: its shape, and which rows remain for a value. */
export interface Filter<T = unknown> extends Shape<T | undefined> {
  readonly isOptional: true;
  /** Keeps the rows for which this condition holds; `given` has all parameters. */
  where?(value: T, given: Values): Sql;
  /** Keeps the rows with ids from `from` on and before `before`. */
  range?(value: T): { readonly from?: string; readonly before?: string };
}

export type Filters = Readonly<Record<string, Filter>>;
type Values = Readonly<Record<string, unknown>>;

/** The parameters of a list: filters, page, and the status that an index may contain. */
export type Given<F extends Filters> =
  InferMembers<F> & Pagination & { readonly status?: string | undefined };

/** The description of a list: items with ids, and its filters. */
export interface List<F extends Filters, Row, Item extends { readonly id: string }> {
  readonly table: Sql;
  readonly columns: Sql;
  /** Holds for every row that is ever listed. */
  readonly always?: Sql;
  readonly filters: F;
  /**
   * The filters that have an index, of the filter's column and the id; the first one given is used.
   * The value has all possible statuses if the status is between the two, and else is empty.
   */
  readonly indexes: { readonly [Name in keyof F]?: readonly string[] };
  /** Makes the statement to run from the one that selects the rows. */
  shown?(rows: Sql): Sql;
  toItem(row: Row): Item;
}

/** The `toItem` of rows that are items already. */
export const asItem = <Item>() => (item: Item): Item => item;

/** A filter by an SQL condition. */
export function where<T>(shape: Shape<T>, condition: Required<Filter<T>>["where"]): Filter<T> {
  return { ...optional(shape), where: condition };
}

/** A filter by the value of a column. */
export function is<T extends SqlValue>(column: Sql, shape: Shape<T>): Filter<T> {
  return where(shape, (value) => sql`${column} = ${value}`);
}

/** Filters by the time when an item was made, which its id has. */
export function madeBetween(kind: string, what: string) {
  const at = (meaning: string, end: "from" | "before"): Filter<number> => ({
    ...optional(described(`${what} ${meaning}.`, TIME_MS)),
    range: (timeMs) => ({ [end]: idBound(kind, timeMs) }),
  });
  return { since: at("at this time or later", "from"), until: at("before this time", "before") };
}

const MAX_LENGTH = 200;

/** A text to look for, taken literally. */
export const WANTED = text(
  (value) =>
    [...value].length <= MAX_LENGTH ? undefined : `Must be at most ${MAX_LENGTH} characters.`,
  { maxLength: MAX_LENGTH },
);

/** Holds if a column begins so, ignoring ASCII case; a NOCASE index on the column finds it. */
export function startsWith(column: Sql, beginning: string): Sql {
  return sql`(${column} >= ${beginning} COLLATE NOCASE
    AND ${column} < ${`${beginning}\u{10ffff}`} COLLATE NOCASE)`;
}

/** The most rows that are found by their beginning. */
const FOUND_AT_MOST = 1000;

/** A filter by the beginning of a column that has a NOCASE index; `always` is the list's. */
export function beginsWith(
  table: Sql,
  column: Sql,
  what: string,
  toText = (text: string) => text,
  always = sql`TRUE`,
) {
  const meaning = `The beginning of ${what}; only the first ${FOUND_AT_MOST} matches are searched.`;
  return where(described(meaning, WANTED), (beginning, { owner }) => {
    const begins = startsWith(column, toText(beginning));
    // An owner's few rows must not be missing because others have very many that begin so.
    return owner !== undefined ? begins : sql`id IN (SELECT id FROM ${table} WHERE ${begins}
      AND ${always} ORDER BY ${column} COLLATE NOCASE ${limitTo(FOUND_AT_MOST)})`;
  });
}

/** Combines the given filters: the range of ids, and the conditions on the rows. */
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
 * How many rows are examined for a page if not every given filter has an index. Such a page may
 * have fewer items than asked for, or none, although there is a next page.
 */
const LOOKED_AT = 5000;

/** Reads a page of a list, newest first. */
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
  // The unary plus keeps SQLite from using another index.
  const rest = joinSql(
    conditions.filter(({ name }) => name !== by && (name !== "status" || statuses.length === 0))
      .map(({ condition }) => sql` AND +${condition}`),
    "",
  );
  const ways = statuses.filter((status) => status === (given.status ?? status))
    .map((status) => sql` AND status = ${sqlText(status)}`);
  // One upper bound only: of two, SQLite searches by one and then filters row by row.
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
