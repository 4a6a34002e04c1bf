/**
 * Causes faults on three rqlited and two Gatepost nodes under load, a row for each fault, and
 * prints the results:
 *
 *   node test/cluster/run.ts [--rows leader,follower] [--times 4] [--seed 7]
 *
 * It needs `dist`. Exits 1 when a promise is broken: an acknowledged event lost, a refused one
 * sent, a chain of refresh tokens broken, replicas that differ, writes held up for too long …
 */
import { readOptions } from "../../scripts/read_options.ts";
import { createRandom } from "../helpers/random.ts";
import { findBrokenPromises } from "./promises.ts";
import { formatRow, TABLE_HEAD } from "./report.ts";
import { ROWS } from "./rows.ts";
import { runTrial, type TrialFigures } from "./trial.ts";

const { values } = readOptions({
  options: {
    rows: { type: "string", default: ROWS.map(({ name }) => name).join() },
    times: { type: "string", default: "4" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});
const wanted = values.rows.split(",");
const unknown = wanted.filter((name) => !ROWS.some((row) => row.name === name));
if (unknown.length > 0) throw new Error(`no such row: ${unknown.join(", ")}`);

const MAX_ERRORS = 10;
const random = createRandom(Number(values.seed));
const table: string[] = [];
const broken: string[] = [];
console.log(`seed ${values.seed}`);
for (const row of ROWS.filter(({ name }) => wanted.includes(name))) {
  const trials: TrialFigures[] = [];
  for (let time = 0; time < Number(values.times); time++) {
    const figures = await runTrial(row, random);
    trials.push(figures);
    console.log(formatRow(row.name, [figures]));
    const promises = findBrokenPromises(row, figures);
    for (const promise of promises) console.log(`  broken: ${promise}`);
    if (promises.length > 0) console.log(figures.errors.slice(0, MAX_ERRORS).join("\n"));
    broken.push(...promises.map((promise) => `${row.name}: ${promise}`));
  }
  table.push(formatRow(row.name, trials));
}
console.log(["", ...TABLE_HEAD, ...table, "", ...broken].join("\n"));
process.exitCode = broken.length === 0 ? 0 : 1;
