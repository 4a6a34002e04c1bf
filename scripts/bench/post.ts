/**
 * Measures the promises about events and their delivery, on the built server with its default
 * durability and the address guard on:
 *
 *   npm run measure:post -- [isolation] [backlog] [fan-out] [cost] [console]
 *                           [--json] [--rounds N] [--profiles FOLDER]
 *
 * All five take about ten minutes. Exit code 1 when a promise is not kept.
 */
import { cpus } from "node:os";
import { measureBacklog } from "./post_backlog.ts";
import { measureConsole } from "./post_console.ts";
import { measureCost } from "./post_cost.ts";
import { measureFanOut } from "./post_fan_out.ts";
import { measureIsolation } from "./post_isolation.ts";
import { type Bench, type Measured, withBench } from "./post_rounds.ts";
import { readOptions } from "../read_options.ts";

const PARTS: Readonly<Record<string, (bench: Bench) => Promise<Measured[]>>> = {
  isolation: measureIsolation,
  backlog: measureBacklog,
  "fan-out": measureFanOut,
  cost: measureCost,
  console: measureConsole,
};
const LIMIT_MS = 20 * 60_000;

const { values, positionals } = readOptions({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "3" },
    profiles: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const chosen = positionals.length > 0 ? positionals : Object.keys(PARTS);
const unknown = chosen.filter((name) => PARTS[name] === undefined);
if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write(`Parts are ${Object.keys(PARTS).join(", ")}; rounds are a number\n`);
  process.exit(2);
}
setTimeout(() => {
  process.stderr.write("The measurement took too long\n");
  process.exit(1); // its child processes end with it
}, LIMIT_MS).unref();

const measured: Measured[] = [];
for (const name of chosen) {
  const lines = await withBench({ rounds, profiles: values.profiles }, (bench) =>
    PARTS[name]?.(bench) ?? Promise.resolve([]));
  measured.push(...lines);
  if (!values.json) process.stdout.write(toTable(lines));
}
if (values.json) {
  const machine = { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model };
  process.stdout.write(`${JSON.stringify({ date: new Date(), machine, rounds, measured })}\n`);
}
process.exit(measured.some(({ promise }) => promise?.isKept === false) ? 1 : 0);

function toTable(lines: readonly Measured[]): string {
  return lines.map(({ what, value, unit, promise }) => {
    const digits = value < 10 ? 3 : value < 1000 ? 1 : 0;
    const kept = promise ? `${promise.text}: ${promise.isKept ? "kept" : "MISSED"}` : "";
    return `${what.padEnd(68)} ${value.toFixed(digits).padStart(8)} ${unit.padEnd(13)} ${kept}`
      .trimEnd() + "\n";
  }).join("");
}
