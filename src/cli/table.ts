import type { Members } from "../base/plain_object.ts";

/** The properties of the output. */
export interface Layout {
  /** The terminal's width; undefined if the output is no terminal, so that nothing needs to fit. */
  readonly columns: number | undefined;
  /** Formats titles. */
  readonly bold: (text: string) => string;
}

const GAP = "  ";
const MIN_SHRUNK = 12;

/**
 * Returns items in aligned columns with titles, each line after `indent`. A column is the name of a
 * member, or `member=title`; a `*` after the member allows to cut it. On a terminal no line wraps:
 * such columns are cut with an ellipsis, and if that is not enough, each item becomes a block of
 * lines. An id is never cut, because people copy it.
 */
export function formatTable(
  items: readonly Members[],
  members: readonly string[],
  layout: Layout,
  indent = "",
): string {
  const columns = members.map((member) => toColumn(member, items));
  const gaps = GAP.length * (columns.length - 1);
  const isFitting = shrink(columns, (layout.columns ?? Infinity) - indent.length - gaps);
  const cellsAt = (row: number) => columns.map(({ cells }) => cells[row] ?? "");
  const titles = cellsAt(0);
  const rows = items.map((_, index) => cellsAt(index + 1));
  if (!isFitting) {
    return rows.map((row) => formatPairs(row.map((cell, index) => [titles[index] ?? "", cell])))
      .join("\n\n");
  }
  const line = (cells: readonly string[]) =>
    indent + cells.map((cell, index) => fill(cell, columns[index]?.width)).join(GAP).trimEnd();
  return [layout.bold(line(titles)), ...rows.map(line)].join("\n");
}

function toColumn(given: string, items: readonly Members[]) {
  const [member = "", title = member.replace(/_at$/, "").replaceAll("_", " ")] =
    given.replace("*", "").split("=");
  const cells = [title.toUpperCase(), ...items.map((item) => visible(formatValue(item[member])))];
  const width = Math.max(...cells.map((cell) => [...cell].length));
  return { cells, width, mayShrink: given.includes("*") };
}

/** Narrows the widest columns that may shrink, cell by cell. Returns whether all columns fit. */
function shrink(columns: readonly ReturnType<typeof toColumn>[], available: number): boolean {
  const shrinkable = columns.filter(({ mayShrink }) => mayShrink);
  let excess = columns.reduce((sum, { width }) => sum + width, 0) - available;
  for (; excess > 0; excess--) {
    const [widest] = shrinkable.toSorted((a, b) => b.width - a.width);
    if (!widest || widest.width <= MIN_SHRUNK) return false;
    widest.width--;
  }
  return true;
}

/** Formats names and values, one pair per line, with aligned values. */
export function formatPairs(pairs: readonly (readonly [name: string, value: unknown])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}${GAP}${visible(formatValue(value))}`)
    .join("\n");
}

/** Formats a JSON value for people: `-` for nothing, lists with spaces, times in seconds. */
export function formatValue(value: unknown): string {
  if (value === undefined || value === null || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(formatValue).join(" ");
  if (typeof value === "object") return JSON.stringify(value);
  const text = String(value);
  const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(text);
  return time ? `${time[1]} ${time[2]}Z` : text;
}

/** Replaces the characters that move the cursor or hide other text. */
export function visible(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** Cuts or pads the text to `width` characters. */
function fill(text: string, width = 0): string {
  const letters = [...text];
  if (letters.length > width) return `${letters.slice(0, width - 1).join("")}…`;
  return text + " ".repeat(width - letters.length);
}
