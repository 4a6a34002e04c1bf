import type { CommandContext, Option } from "./command.ts";
import { type Column, formatTable, type Members } from "./table.ts";

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
  const { values, terminal } = context;
  const given = { ...filters, limit: values.text("limit"), cursor: values.text("cursor") };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) query.set(name, value);
  }
  const backend = await context.openBackend();
  const answer = await backend.call("GET", query.size === 0 ? path : `${path}?${query}`);
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

/** A column that shows a member as it is. */
export function column(title: string, member: string, mayShrink = false): Column {
  return { title, show: (item) => item[member], mayShrink };
}

/** The path of one thing below a resource. */
export function itemPath(resource: string, id: string, below = ""): string {
  return `${resource}/${encodeURIComponent(id)}${below}`;
}

/** The names in the values of an option that may be repeated, or hold several at once. */
export function splitNames(values: readonly string[] | undefined): string[] | undefined {
  return values?.flatMap((value) => value.split(/[ ,]+/)).filter((name) => name !== "");
}
