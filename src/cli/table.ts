/** The members of a JSON object whose shape the backend vouches for. */
export type Members = Readonly<Record<string, unknown>>;

/** One column: its title, the member that it shows, and whether it may be cut to fit. */
export interface Column {
  readonly title: string;
  readonly member: string;
  readonly mayShrink?: boolean;
}

/** How a table is laid out. */
export interface TableOptions {
  /** The terminal's width; undefined where the output is no terminal and nothing needs to fit. */
  readonly columns: number | undefined;
  /** Makes a title stand out. */
  readonly emphasize: (text: string) => string;
  /** Stands before every line. */
  readonly indent?: string;
}

const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f" +
    "\\uff00-\\uff60\\uffe0-\\uffe6\\p{Emoji_Presentation}]",
  "u",
);
const COMBINING = /\p{Mn}/u;
const GAP = "  ";
const MIN_SHRUNK = 12;

/**
 * Returns items as aligned columns under their titles. On a terminal no line wraps: columns that
 * may shrink are cut with an ellipsis, and where that is not enough each item becomes a block of
 * lines. An id is never cut, for it is there to be copied.
 */
export function formatTable(
  items: readonly Members[],
  columns: readonly Column[],
  options: TableOptions,
): string {
  const rows = items.map((item) => columns.map(({ member }) => visible(formatValue(item[member]))));
  const widths = columns.map(({ title }, index) =>
    Math.max(...[title, ...rows.map((row) => row[index] ?? "")].map(displayWidth))
  );
  const { indent = "" } = options;
  const available = options.columns ?? Infinity;
  const room = available - indent.length - GAP.length * (columns.length - 1);
  const fitted = fit(widths, columns, room);
  if (sum(fitted) > room) {
    const titles = columns.map(({ title }) => title);
    return rows.map((row) => formatPairs(row.map((cell, index) => [titles[index] ?? "", cell])))
      .join("\n\n");
  }
  const line = (cells: readonly string[]) =>
    indent + cells.map((cell, index) => pad(cut(cell, fitted[index] ?? 0), fitted[index] ?? 0))
      .join(GAP).trimEnd();
  const head = line(columns.map(({ title }) => title));
  return [options.emphasize(head), ...rows.map(line)].join("\n");
}

/** Takes from the widest column that may shrink, cell by cell, until all fit or none may. */
function fit(widths: readonly number[], columns: readonly Column[], room: number): number[] {
  const fitted = [...widths];
  const shrinkable = widths.flatMap((_, index) => columns[index]?.mayShrink ? [index] : []);
  const widthAt = (index: number) => fitted[index] ?? 0;
  while (sum(fitted) > room) {
    const [widest = -1] = shrinkable.toSorted((a, b) => widthAt(b) - widthAt(a));
    if (widthAt(widest) <= MIN_SHRUNK) break;
    fitted[widest] = widthAt(widest) - 1;
  }
  return fitted;
}

/** Names and values, one pair a line, the values aligned. */
export function formatPairs(pairs: readonly (readonly [name: string, value: unknown])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}${GAP}${visible(formatValue(value))}`)
    .join("\n");
}

/** A value of a JSON answer for people: `-` for nothing, lists by spaces, times to the second. */
export function formatValue(value: unknown): string {
  if (value === undefined || value === null || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(formatValue).join(" ");
  if (typeof value === "object") return JSON.stringify(value);
  const text = String(value);
  const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(text);
  return time ? `${time[1]} ${time[2]}Z` : text;
}

/** Text with nothing in it that moves the cursor or hides what stands there. */
export function visible(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** How many cells of a terminal a text takes, as near as Unicode's blocks tell. */
function displayWidth(text: string): number {
  let width = 0;
  for (const letter of text) width += WIDE.test(letter) ? 2 : COMBINING.test(letter) ? 0 : 1;
  return width;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = "";
  for (const letter of text) {
    if (displayWidth(kept + letter) >= width) break;
    kept += letter;
  }
  return `${kept}…`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
