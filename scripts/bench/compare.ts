import type { BenchCase, Finding, Stage, Target } from "./bench_case.ts";
import { type LoadResult, percentile, runLoad } from "./http_load.ts";
import { medianOf } from "./post_rounds.ts";

/** One side of a comparison. */
export interface Side {
  readonly name: string;
  /** CPU time of its server so far. */
  cpuMs(): number;
  /** Prepares what the next turn uses up. */
  prepare?(turnMs: number): Promise<void>;
  /** Puts the side under load for `turnMs`. */
  run(turnMs: number): Promise<LoadResult>;
}

/** A server under as much load as its connections can send; `next` gives each request's bytes. */
export function loadSide(
  name: string,
  { port, cpuMs }: { readonly port: number; cpuMs(): number },
  connections: number,
  next: () => Buffer,
): Side {
  const load = { port, connections, status: 200, next };
  return { name, cpuMs, run: (durationMs) => runLoad({ ...load, durationMs }) };
}

/** A side that Gatepost is compared with. */
export interface Reference {
  readonly side: Side;
  /** What multiple of this side's rate Gatepost's rate must be. */
  readonly target?: Target;
}

/** The sides of a comparison, started. */
export interface Contest {
  readonly gatepost: Side;
  readonly references: readonly Reference[];
  stop(): Promise<void>;
}

interface Turn {
  readonly perSecond: number;
  readonly cpuMicros: number;
  readonly latenciesMs: Float64Array;
}

const WARM_UP_MS = 2000; // until V8 has compiled the hot code

/** A case in which all sides take turns, round after round: A B A B. */
export function comparison(
  name: string,
  what: string,
  start: (stage: Stage) => Promise<Contest>,
): BenchCase {
  return {
    name,
    async measure(stage) {
      const contest = await start(stage);
      try {
        return await compare(what, contest, stage);
      } finally {
        await contest.stop();
      }
    },
  };
}

/** Compares sides that the caller starts and stops. */
export async function compare(
  what: string,
  { gatepost, references }: Contest,
  { turnMs, rounds }: Stage,
): Promise<Finding[]> {
  const sides = [gatepost, ...references.map(({ side }) => side)];
  const turns = new Map<Side, Turn[]>(sides.map((side) => [side, []]));
  for (const side of sides) await takeTurn(side, WARM_UP_MS);
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) turns.get(side)?.push(await takeTurn(side, turnMs));
  }
  const own = turns.get(gatepost) ?? [];
  const latenciesMs = Float64Array.from(own.flatMap((turn) => [...turn.latenciesMs])).sort();
  return references.map(({ side, target }) => {
    const theirs = turns.get(side) ?? [];
    return {
      what,
      unit: "/s",
      gatepost: medianOf(own, ({ perSecond }) => perSecond),
      reference: { name: side.name, value: medianOf(theirs, ({ perSecond }) => perSecond) },
      // The ratio is of turns that follow each other: a slow spell of the machine slows both.
      ratio: medianOf(own.map((turn, round) => turn.perSecond / (theirs[round]?.perSecond ?? NaN)),
        (ratio) => ratio),
      cpuMicros: {
        gatepost: medianOf(own, ({ cpuMicros }) => cpuMicros),
        reference: medianOf(theirs, ({ cpuMicros }) => cpuMicros),
      },
      ...latenciesMs.length > 0 && {
        latencyMs: { p50: percentile(latenciesMs, 0.5), p99: percentile(latenciesMs, 0.99) },
      },
      ...target && { target },
    };
  });
}

async function takeTurn(side: Side, turnMs: number): Promise<Turn> {
  await side.prepare?.(turnMs);
  const beforeMs = side.cpuMs();
  const { count, seconds, latenciesMs } = await side.run(turnMs);
  const cpuMicros = (side.cpuMs() - beforeMs) / count * 1000;
  return { perSecond: count / seconds, cpuMicros, latenciesMs };
}
