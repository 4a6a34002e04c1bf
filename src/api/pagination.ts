import {
  described,
  type InferMembers,
  manyOf,
  type Members,
  named,
  nullable,
  type ObjectShape,
  optional,
  record,
  type Shape,
  TEXT,
  wholeNumber,
} from "../base/shape.ts";
import type { Database, Page } from "../database/database.ts";
import { type Filters, type Given, type List, listPart } from "../store/list.ts";
import type { Context } from "./operation.ts";

const MAX_LIMIT = 200;
const CURSOR_FORM = /^[0-9a-z]{1,260}$/;

/** The cursor of a list in memory; parsing returns the key of an item. */
const CURSOR: Shape<string> = {
  schema: { type: "string", pattern: CURSOR_FORM.source },
  definitions: {},
  parse(value, report) {
    const key = Buffer.from(String(value), "hex").toString();
    const isValid = CURSOR_FORM.test(String(value)) && formatCursor(key) === value;
    if (!isValid) report("Must be a next_cursor of this list.");
    return key;
  },
};

/** Makes the query parameters of a list; `cursor` is the shape of next_cursor, an item's id. */
export function pagination(cursor: Shape<string> = CURSOR) {
  return {
    limit: optional(described("The most items to return.", wholeNumber(1, MAX_LIMIT)), 50),
    cursor: optional(described("The next_cursor of the previous page.", cursor)),
  } as const;
}

type PageQuery = InferMembers<ReturnType<typeof pagination>>;
type ListContext = Context<string, readonly string[], PageQuery, unknown>;

/** Makes the members of a list response: the items, and the cursor of the next page. */
export function pageMembers<T>(item: Shape<T>) {
  const next = "Send it as cursor to get the next page; null on the last page.";
  return { items: manyOf(item), next_cursor: described(next, nullable(TEXT)) } as const;
}

/** Makes the shape of one page of a list: `UserPage` for items of shape `User`. */
export function pageOf<T>(item: Shape<T>) {
  const name = String(item.schema["$ref"]).replace(/^.*\//, "");
  return named(`${name}Page`, record(pageMembers(item)));
}

/** Converts one page of a list to the record that `pageOf` describes. */
export function toPageRecord<Item, Shown>(page: Page<Item>, toRecord: (item: Item) => Shown) {
  return { items: page.items.map(toRecord), next_cursor: page.next ?? null };
}

/** Makes the query, `returns` and handler of an operation that lists stored items. */
export function listing<
  const F extends Filters,
  Row,
  Item extends { readonly id: string },
  M extends Members & { readonly id: Shape<string> },
>(
  database: Database,
  list: List<F, Row, Item>,
  record: ObjectShape<M>,
  toRecord: (item: Item) => InferMembers<M>,
) {
  return {
    query: { ...pagination(record.members.id), ...list.filters },
    returns: pageOf(record),
    handle: async ({ query }: { readonly query: Given<F> }) =>
      toPageRecord(await listPart(database, list, query), toRecord),
  };
}

/**
 * The same for a list in memory: the records that `read` returns, sorted by their keys. A cursor
 * stays valid after its item is gone.
 */
export function listingOf<Item extends object>(
  item: Shape<Item>,
  keyOf: (item: Item) => string,
  order: "up" | "down",
  read: (context: ListContext) => readonly NoInfer<Item>[] | Promise<readonly NoInfer<Item>[]>,
) {
  const sign = order === "up" ? 1 : -1;
  const compare = (a: string, b: string) => a === b ? 0 : a < b ? -sign : sign;
  return {
    query: pagination(),
    returns: pageOf(item),
    async handle(context: ListContext) {
      const { limit, cursor } = context.query;
      const rest = (await read(context))
        .filter((each) => cursor === undefined || compare(keyOf(each), cursor) > 0)
        .sort((a, b) => compare(keyOf(a), keyOf(b)));
      const items = rest.slice(0, limit);
      const last = rest.length > limit ? items.at(-1) : undefined;
      return { items, next_cursor: last === undefined ? null : formatCursor(keyOf(last)) };
    },
  };
}

function formatCursor(key: string): string {
  return Buffer.from(key).toString("hex");
}
