import { setTimeout as sleep } from "node:timers/promises";
import { countDeliveries, type DeliveryFigures } from "../crash/count.ts";
import { type Arrival, pairKey } from "../crash/recorder.ts";
import type { Random } from "../helpers/random.ts";
import type { Journal } from "./journal.ts";
import { startLoad } from "./load.ts";
import { compareReplicas } from "./replicas.ts";
import type { Aftermath, Row } from "./rows.ts";
import { type ClusterStage, startStage } from "./stage.ts";

/** The figures of one fault under load. */
export interface TrialFigures extends DeliveryFigures {
  readonly chains: Journal["chains"];
  /** The longest time in which no write was acknowledged to anybody. */
  readonly gapMs: number;
  /** The longest that a write waited for its response. */
  readonly slowestMs: number;
  readonly gets: Journal["gets"];
  /** After how long the callbacks that a dead node had in flight came again. */
  readonly takeoverMs: readonly number[];
  /** How long ended tokens were accepted by the other node, apart from during the fault. */
  readonly revokedMs: readonly number[];
  /** The same during the fault. */
  readonly revokedInFaultMs: readonly number[];
  /** Tables that are not the same at every node. */
  readonly differing: readonly string[];
  readonly failures: Journal["failures"];
  /** What the Gatepost nodes logged as errors. */
  readonly errors: readonly string[];
}

/** When the fault began, when it was repaired, and when the load was stopped. */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stoppedAtMs: number;
}

const WARM_MS = 1_500;
const CALM_MS = 4_000;
/** How long a fault may have effects after it was repaired. */
const ECHO_MS = 2_500;
const DRAIN_MS = 90_000;
/** By then whatever should not come would have come. */
const AFTER_MS = 1_500;
/** How long before the kill of its process an outcome may have been without a record. */
const RECORD_MS = 3_000;

/** Starts everything, causes one fault under load, and counts once all is calm again. */
export async function runTrial(row: Row, random: Random): Promise<TrialFigures> {
  const stage = await startStage(row.flags);
  let aftermath: Aftermath = {};
  try {
    stage.recorder.answer(() => random.chance(2) ? 500 : 204);
    const load = await startLoad(stage, random);
    await sleep(WARM_MS);
    const fromMs = performance.now();
    aftermath = await row.run(stage) ?? {};
    const toMs = performance.now();
    await sleep(CALM_MS);
    const stoppedAtMs = performance.now();
    await load.stop();
    await drain(stage, load.journal);
    for (const gatepost of stage.gateposts) await gatepost.server.stop();
    const span = { fromMs, toMs, stoppedAtMs };
    const differing = await compareReplicas(stage.rqlite.nodes);
    return { ...countAll(stage, load.journal, span, aftermath), differing };
  } finally {
    await stage.stop();
    aftermath.cleanUp?.();
  }
}

/** Waits until all acknowledged events have come, and long enough for wrong ones to come. */
async function drain(
  { recorder, subscriptions }: ClusterStage,
  { batches }: Journal,
): Promise<void> {
  const wanted = subscriptions.flatMap(([path]) =>
    batches.filter(({ outcome }) => outcome === "acknowledged")
      .flatMap(({ numbers }) => numbers.map((n) => pairKey(path, n)))
  );
  for (const endMs = performance.now() + DRAIN_MS; performance.now() < endMs;) {
    if (wanted.every((key) => recorder.pairs.has(key))) break;
    await sleep(50);
  }
  await sleep(AFTER_MS);
}

function countAll(
  { recorder, subscriptions, gateposts }: ClusterStage,
  journal: Journal,
  fault: Span,
  { killedAtMs }: Aftermath,
): Omit<TrialFigures, "differing"> {
  const { arrivals } = recorder;
  const mayRepeat = ({ status = 0, atMs }: Arrival) =>
    status !== 204 ||
    killedAtMs !== undefined && atMs > killedAtMs - RECORD_MS && atMs < killedAtMs;
  const inFlight = new Map<string, number>();
  for (const { id } of arrivals.filter(mayRepeat)) inFlight.set(id, (inFlight.get(id) ?? 0) + 1);
  const isOrphan = ({ status }: Arrival) => status === undefined;
  const orphans = new Set(arrivals.filter(isOrphan).map(({ id }) => id));
  const takeoverMs = killedAtMs === undefined ? [] : arrivals
    .filter((each) => each.atMs > killedAtMs && !isOrphan(each) && orphans.has(each.id))
    .map(({ atMs }) => atMs - killedAtMs);
  const isInFault = (atMs: number) => atMs > fault.fromMs - 1_000 && atMs < fault.toMs + ECHO_MS;
  const revokedMs = (during: boolean) =>
    journal.revoked.filter(({ endedAtMs }) => isInFault(endedAtMs) === during)
      .map(({ tookMs }) => tookMs);
  return {
    ...countDeliveries(subscriptions, journal.batches, recorder, inFlight),
    chains: journal.chains,
    gapMs: longestGap(journal.acknowledgedAtMs, fault.stoppedAtMs),
    slowestMs: journal.slowestMs,
    gets: journal.gets,
    takeoverMs,
    revokedMs: revokedMs(false),
    revokedInFaultMs: revokedMs(true),
    failures: journal.failures,
    errors: gateposts.flatMap(({ server }) => server.lines)
      .filter((line) => line.includes('"level":"error"')),
  };
}

function longestGap(timesMs: readonly number[], endMs: number): number {
  const all = [...timesMs.filter((atMs) => atMs < endMs), endMs];
  return Math.max(...all.slice(1).map((atMs, index) => atMs - (all[index] ?? atMs)));
}
