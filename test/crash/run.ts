/**
 * Kills the server at every point of an event's life and prints the results:
 *
 *   node test/crash/run.ts --kills 100 [--seed 7]
 *
 * Exits 1 when an acknowledged event was lost, a refused one was sent, or anything came again that
 * was not in flight.
 */
import { readOptions } from "../../scripts/read_options.ts";
import { createRandom } from "../helpers/random.ts";
import { findCrashFaults } from "./faults.ts";
import { runCrashMatrix } from "./matrix.ts";

const { values } = readOptions({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});
console.log(`seed ${values.seed}`);
let killed = 0;
const figures = await runCrashMatrix({
  kills: Number(values.kills),
  random: createRandom(Number(values.seed)),
  report: (line) => console.log(`${++killed} ${line}`),
});
console.log(JSON.stringify(figures, undefined, 2));
const faults = findCrashFaults(figures);
for (const fault of faults) console.log(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
