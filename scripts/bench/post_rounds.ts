import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CpuTime, PostServer } from "./post_process.ts";
import { type PostReceiver, startPostReceiver } from "./post_receiver.ts";

/** One line of the result. */
export interface Measured {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The promise and whether it is kept; undefined if the figure is for information only. */
  readonly promise?: { readonly text: string; readonly isKept: boolean };
}

/** What a measurement works with. */
export interface Bench {
  /** A folder of its own for each name. */
  readonly folder: (name: string) => string;
  readonly receiver: PostReceiver;
  /** How many turns each side of a comparison has. */
  readonly rounds: number;
  /** The folder for CPU profiles; without it none are made. */
  readonly profiles: string | undefined;
}

/** Runs a measurement with a scratch folder and a receiver of its own. */
export async function withBench<Result>(
  options: Pick<Bench, "rounds" | "profiles">,
  measure: (bench: Bench) => Promise<Result>,
): Promise<Result> {
  const root = mkdtempSync(join(tmpdir(), "gatepost-bench-"));
  const receiver = await startPostReceiver();
  try {
    return await measure({ ...options, receiver, folder: (name) => join(root, name) });
  } finally {
    await receiver.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** The deliveries of a span of time. */
export interface Drain {
  readonly perSecond: number;
  readonly cpuMsEach: number;
  readonly mainThreadMsEach: number;
}

/** Measures what a server delivers in the next `durationMs`. */
export async function measureDrain(
  server: PostServer,
  receiver: PostReceiver,
  durationMs: number,
): Promise<Drain> {
  const [startedMs, first, before] = [performance.now(), await receiver.count(), server.cpu()];
  await sleep(durationMs);
  const [endedMs, last, after] = [performance.now(), await receiver.count(), server.cpu()];
  return drainOf(last - first, endedMs - startedMs, before, after);
}

/** Calculates a drain from counts and times. */
export function drainOf(count: number, ms: number, before: CpuTime, after: CpuTime): Drain {
  return {
    perSecond: count / ms * 1000,
    cpuMsEach: (after.totalMs - before.totalMs) / count,
    mainThreadMsEach: (after.mainThreadMs - before.mainThreadMs) / count,
  };
}

/** Runs each name once in every round, so that what disturbs the machine disturbs all alike. */
export async function inTurn<Name extends string, Result>(
  rounds: number,
  names: readonly Name[],
  run: (name: Name) => Promise<Result>,
): Promise<Record<Name, Result[]>> {
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    Result[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) results[name].push(await run(name));
  }
  return results;
}

/** The median of a member over rounds. */
export function medianOf<Result>(
  results: readonly Result[],
  read: (result: Result) => number,
): number {
  const sorted = results.map(read).sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
