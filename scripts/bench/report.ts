import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import { type Finding, scoreOf, type Target } from "./bench_case.ts";

/** The machine and the versions of a measurement. */
export interface Setting {
  readonly date: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** Reads the machine and the versions; `program` is the built `gatepost`. */
export function readSetting(
  program: string,
  peers: Readonly<Record<string, string>>,
): Setting {
  const version = String(execFileSync(process.execPath, [program, "--version"])).trim();
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC",
    machine: `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${gibibytes} GiB, ` +
      `${process.platform} ${release()}`,
    versions: {
      gatepost: version.replace(/^gatepost /, ""),
      node: process.versions.node,
      sqlite: process.versions["sqlite"] ?? "?",
      ...peers,
    },
  };
}

const HEADINGS =
  ["", "Gatepost", "reference", "", "ratio", "CPU an op", "p50 / p99", "target", "met"];

/** The findings as a table. */
export function toTable(findings: readonly Finding[]): string {
  const rows = [HEADINGS, ...findings.map(toRow)];
  const widths = HEADINGS.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const toLine = (row: readonly string[]): string =>
    row.map((cell, column) => isText(column) ? cell.padEnd(widths[column] ?? 0)
      : cell.padStart(widths[column] ?? 0)).join("  ").trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("──");
  const [head = [], ...body] = rows;
  return `${[toLine(head), rule, ...body.map(toLine)].join("\n")}\n`;
}

function isText(column: number): boolean {
  return column === 0 || column === 3;
}

function toRow(finding: Finding): string[] {
  const { what, unit, gatepost, reference, ratio, cpuMicros, latencyMs, target } = finding;
  const isRate = unit === "/s";
  const value = (figure: number) => isRate ? `${format(figure)}/s` : `${format(figure)} ${unit}`;
  const score = scoreOf(finding);
  return [
    what,
    value(gatepost),
    reference ? value(reference.value) : "",
    reference?.name ?? "",
    ratio === undefined ? "" : `${ratio.toFixed(2)} ×`,
    cpuMicros ? `${format(cpuMicros.gatepost)} : ${format(cpuMicros.reference)} µs` : "",
    latencyMs ? `${format(latencyMs.p50)} / ${format(latencyMs.p99)} ms` : "",
    target ? formatTarget(target, ratio === undefined ? unit : "×") : "",
    score === undefined ? "" : score >= 1 ? "yes" : "NO",
  ];
}

function formatTarget({ kind, value }: Target, unit: string): string {
  return `${kind === "at least" ? "≥" : "≤"} ${value} ${unit}`;
}

function format(figure: number): string {
  const digits = Math.abs(figure) < 10 ? 2 : Math.abs(figure) < 100 ? 1 : 0;
  return figure.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

const BAR_CHARS = 40;
const BAR_AT_TARGET = 20; // so the longest bar is twice the target

/** A bar for each finding that has a target; those that reach the line have met it. */
export function toChart(findings: readonly Finding[]): string {
  const scored = findings.map((finding) => ({ finding, score: scoreOf(finding) ?? NaN }))
    .filter(({ score }) => Number.isFinite(score));
  const names = scored.map(({ finding: { what, reference } }) =>
    reference ? `${what} : ${reference.name}` : what);
  const width = Math.max(0, ...names.map((name) => name.length));
  const lines = scored.map(({ score }, index) => {
    const length = Math.min(BAR_CHARS, Math.max(1, Math.round(score * BAR_AT_TARGET)));
    const bar = "█".repeat(length).padEnd(BAR_CHARS, " ");
    const marked = score >= 1
      ? bar
      : `${bar.slice(0, BAR_AT_TARGET)}│${bar.slice(BAR_AT_TARGET + 1)}`;
    const name = (names[index] ?? "").padEnd(width);
    return `${name}  ${marked.trimEnd()} ${Math.round(score * 100)} %`;
  });
  const head = `${"".padEnd(width)}  ${"".padEnd(BAR_AT_TARGET)}▼ target`;
  return `${[head, ...lines].join("\n")}\n`;
}
