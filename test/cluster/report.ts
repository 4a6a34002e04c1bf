import type { TrialFigures } from "./trial.ts";

type Trials = readonly TrialFigures[];
type Column = readonly [title: string, cell: (trials: Trials) => string];

const sum = (of: (trial: TrialFigures) => number) => (trials: Trials) =>
  String(trials.reduce((total, trial) => total + of(trial), 0));

/** The lowest and the highest of the trials. */
const range = (of: (trial: TrialFigures) => readonly number[], unit = 1) => (trials: Trials) => {
  const values = trials.flatMap(of).map((value) => round(value / unit));
  if (values.length === 0) return "–";
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? String(most) : `${least}–${most}`;
};

const COLUMNS: readonly Column[] = [
  ["n", (trials) => String(trials.length)],
  ["events acknowledged", sum(({ acknowledged }) => acknowledged)],
  ["lost", sum(({ lost }) => lost)],
  ["refused", sum(({ refused }) => refused)],
  ["sent of these", sum(({ sentThoughRefused }) => sentThoughRefused)],
  ["unknown", sum(({ unanswered }) => unanswered)],
  ["doubled", sum(({ torn }) => torn)],
  ["repeated, not in flight", sum(({ unexplained }) => unexplained)],
  ["refreshed", sum(({ chains }) => chains.exchanged)],
  ["broken chains", sum(({ chains }) => chains.broken)],
  ["longest gap, s", range(({ gapMs }) => [gapMs], 1000)],
  ["slowest response, s", range(({ slowestMs }) => [slowestMs], 1000)],
  ["GETs p50 / p99 / max, ms", (trials) => {
    const sorted = trials.flatMap(({ gets }) => gets.tookMs).sort((a, b) => a - b);
    return [0.5, 0.99, 1].map((part) => round(percentile(sorted, part))).join(" / ");
  }],
  ["GETs", sum(({ gets }) => gets.tookMs.length)],
  ["of these failed", sum(({ gets }) => gets.failed)],
  ["taken over after, s", range(({ takeoverMs }) => takeoverMs, 1000)],
  ["revoked within, s (during the fault)", (trials) => {
    const most = (values: number[]) =>
      values.length === 0 ? "–" : round(Math.max(...values) / 1000);
    const during = most(trials.flatMap(({ revokedInFaultMs }) => revokedInFaultMs));
    return `${most(trials.flatMap(({ revokedMs }) => revokedMs))} (${during})`;
  }],
  ["replicas equal", (trials) => {
    const equal = trials.filter(({ differing }) => differing.length === 0).length;
    return `${equal} of ${trials.length}`;
  }],
  ["failures", (trials) => {
    const counts = new Map<string, number>();
    for (const [failure, count] of trials.flatMap(({ failures }) => [...failures])) {
      counts.set(failure, (counts.get(failure) ?? 0) + count);
    }
    return [...counts].map(([failure, count]) => `${count} × ${failure}`).join(", ") || "–";
  }],
];

/** The head of a Markdown table of rows. */
export const TABLE_HEAD: readonly string[] = [
  `| | ${COLUMNS.map(([title]) => title).join(" | ")} |`,
  `|---|${COLUMNS.map(() => "---|").join("")}`,
];

/** A row of that table. */
export function formatRow(name: string, trials: Trials): string {
  return `| ${name} | ${COLUMNS.map(([, cell]) => cell(trials)).join(" | ")} |`;
}

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** Rounds to two digits after the point below 10, else to one. */
function round(value: number): number {
  return Number(value.toFixed(value < 10 ? 2 : 1));
}
