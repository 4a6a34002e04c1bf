import type { ClientPackage } from "./client.ts";
import { TABLES } from "./columns.ts";
import type { Outcome, Outcomes } from "./run.ts";

const MARKS: Readonly<Record<Outcome["kind"], string>> = { good: "✓", unknown: "–", bad: "✗" };
const UNKNOWN: Outcome = { kind: "unknown" };

/**
 * Returns the tables in Markdown, with a row for each client and a column for each feature. A table
 * leaves out clients that support none of it; the reason of each ✗ is below. `names` has each
 * client's name with its version.
 */
export function formatReport(
  outcomes: Outcomes,
  names: ReadonlyMap<ClientPackage, string>,
): string {
  const reasons: string[] = [];
  const tables = TABLES.map(({ title, columns }) => {
    const rows: string[][] = [];
    for (const [client, row] of outcomes) {
      const name = names.get(client) ?? client.name;
      const found = columns.map((column) => ({ column, outcome: row.get(column) ?? UNKNOWN }));
      if (found.every(({ outcome }) => outcome.kind === "unknown")) continue;
      rows.push([name, ...found.map(({ outcome }) => MARKS[outcome.kind])]);
      for (const { column, outcome } of found) {
        if (outcome.kind !== "bad") continue;
        reasons.push(...outcome.reasons.map((why) => `✗ ${name}, ${column.heading}: ${why}`));
      }
    }
    return formatTable([title, ...columns.map(({ heading }) => heading)], rows);
  });
  return [...tables, ...reasons].join("\n\n");
}

/** The number of ✗, and of ✓. */
export function countOutcomes(outcomes: Outcomes): { readonly bad: number; readonly good: number } {
  const kinds = [...outcomes.values()].flatMap((row) => [...row.values()].map(({ kind }) => kind));
  const count = (wanted: Outcome["kind"]) => kinds.filter((kind) => kind === wanted).length;
  return { bad: count("bad"), good: count("good") };
}

function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((text, index) =>
    Math.max(text.length, ...rows.map((row) => row[index]?.length ?? 0))
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
