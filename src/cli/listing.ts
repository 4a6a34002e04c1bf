import type { CommandContext, Option } from "./command.ts";
import { type Column, formatPairs, formatTable, type Members } from "./table.ts";

/** Which part of a list is shown. */
export const LIST_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { value: "N", meaning: "how many, 1 to 200", default: "50" },
  cursor: { value: "CURSOR", meaning: "go on where a list before ended, as it said" },
};

/** Calls a list of the backend with what of `filters` is given, and prints it as a table. */
export async function printList(
  context: CommandContext,
  path: string,
  filters: Readonly<Record<string, string | undefined>>,
  columns: readonly Column[],
): Promise<void> {
  const { terminal } = context;
  const backend = await context.openBackend();
  const answer = await backend.call("GET", withPage(path, context, filters));
  const { items, next_cursor: next } = answer.json as {
    readonly items: readonly Members[];
    readonly next_cursor: string | null;
  };
  if (items.length === 0 && !context.isJson) {
    terminal.note("There are none.");
    return;
  }
  context.print(answer, () =>
    formatTable(items, columns, { columns: terminal.columns, emphasize: terminal.bold })
  );
  if (next !== null && !context.isJson) terminal.note(`There are more: --cursor ${next}`);
}

/** Calls what shows one thing, and prints its members by name, under `tables` those that are lists. */
export async function printOne(
  context: CommandContext,
  path: string,
  tables: Readonly<Record<string, readonly Column[]>> = {},
): Promise<void> {
  const { terminal } = context;
  const answer = await (await context.openBackend()).call("GET", path);
  context.print(answer, (record) => {
    const pairs = Object.entries(record)
      .filter(([name]) => tables[name] === undefined && name !== "next_cursor");
    const lists = Object.entries(tables).flatMap(([name, columns]) => {
      const items = record[name] as readonly Members[];
      const options = { columns: terminal.columns, emphasize: terminal.bold, indent: "  " };
      return items.length === 0 ? [] : ["", formatTable(items, columns, options)];
    });
    return [formatPairs(pairs), ...lists].join("\n");
  });
  const { next_cursor: next } = answer.json as { readonly next_cursor?: string | null };
  if (next && !context.isJson) terminal.note(`There are more: --cursor ${next}`);
}

/** A column that shows a member as it is. */
export function column(title: string, member: string, mayShrink = false): Column {
  return { title, show: (item) => item[member], mayShrink };
}

/** The path with what of `filters` and of the list's own options is given as its query. */
export function withPage(
  path: string,
  { values }: CommandContext,
  filters: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = { ...filters, limit: values.text("limit"), cursor: values.text("cursor") };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The path of one thing below a resource. */
export function itemPath(resource: string, id: string, below = ""): string {
  return `${resource}/${encodeURIComponent(id)}${below}`;
}

/** The names in the values of an option that may be repeated, or hold several at once. */
export function splitNames(values: readonly string[] | undefined): string[] | undefined {
  return values?.flatMap((value) => value.split(/[ ,]+/)).filter((name) => name !== "");
}
