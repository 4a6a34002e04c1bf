import { setTimeout as sleep } from "node:timers/promises";
import type { BenchCase, Finding, Stage } from "./bench_case.ts";
import { startGatepost, startServer } from "./gatepost.ts";
import { addAccounts, runLogins } from "./neighbours.ts";
import { medianOf } from "./post_rounds.ts";

/** Measures the start on an empty database, and the memory of the process. */
export const START_CASES: readonly BenchCase[] = [
  { name: "start", measure: measureStart },
  { name: "memory", measure: measureMemory },
];

// Stripping the types of endpoint modules would take time and memory of its own.
const WITHOUT_ENDPOINTS = { env: { GATEPOST_ENDPOINTS: "" } };
const STARTS = 5;
const IDLE_MS = 2000;
const FLOOD_MS = 5000;

async function measureStart(stage: Stage): Promise<Finding[]> {
  const times: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    const server = await startServer(stage.newFolder(), WITHOUT_ENDPOINTS);
    times.push(server.startMs);
    await server.stop();
  }
  return [{
    what: "start to listening, empty database, admin's hash",
    unit: "ms",
    gatepost: medianOf(times, (ms) => ms),
    target: { kind: "at most", value: 250 },
  }];
}

async function measureMemory(stage: Stage): Promise<Finding[]> {
  const gatepost = await startGatepost(stage.newFolder(), WITHOUT_ENDPOINTS);
  try {
    await sleep(IDLE_MS);
    const idleMiB = gatepost.residentMiB();
    await runLogins(gatepost.port, FLOOD_MS, await addAccounts(gatepost));
    return [
      {
        what: "resident memory, idle",
        unit: "MiB",
        gatepost: idleMiB,
        target: { kind: "at most", value: 110 },
      },
      {
        what: "resident memory after a login flood",
        unit: "MiB",
        gatepost: gatepost.residentMiB(),
        target: { kind: "at most", value: 200 },
      },
    ];
  } finally {
    await gatepost.stop();
  }
}
