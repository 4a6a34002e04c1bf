import type { Batch } from "./load.ts";
import { pairKey, type Recorder } from "./recorder.ts";

/** What became of the events of a load. */
export interface DeliveryFigures {
  /** Events whose request had a 2xx response, a 5xx one, and none. */
  readonly acknowledged: number;
  readonly refused: number;
  readonly unanswered: number;
  /** Callbacks that came in. */
  readonly received: number;
  /** Deliveries of acknowledged events that never came. */
  readonly lost: number;
  /** Deliveries of events whose request had a 5xx response. */
  readonly sentThoughRefused: number;
  /** Requests without a response of whose events some came and others did not. */
  readonly halfStored: number;
  /** Callbacks that came again, with the same `webhook-id`. */
  readonly duplicates: number;
  /** Deliveries that had come and were not recorded when the server was killed, in all. */
  readonly inFlight: number;
  /** Callbacks that came again although they were not in flight when the server was killed. */
  readonly unexplained: number;
  /** Deliveries that came with two `webhook-id`s. */
  readonly torn: number;
}

/**
 * Compares what was sent with what came.
 *
 * @param subscriptions path and event of each
 * @param inFlight how often each delivery may come again
 */
export function countDeliveries(
  subscriptions: readonly (readonly [path: string, event: string])[],
  batches: readonly Batch[],
  { counts, pairs, torn }: Pick<Recorder, "counts" | "pairs" | "torn">,
  inFlight: ReadonlyMap<string, number>,
): DeliveryFigures {
  const of = (outcome: Batch["outcome"]) => batches.filter((batch) => batch.outcome === outcome);
  const wanted = (batch: Batch) =>
    subscriptions.filter(([, event]) => event === batch.event)
      .flatMap(([path]) => batch.numbers.map((n) => pairKey(path, n)));
  const cameOf = (batch: Batch) => wanted(batch).filter((key) => pairs.has(key)).length;
  const sum = (numbers: Iterable<number>) => [...numbers].reduce((left, right) => left + right, 0);
  const countEvents = (outcome: Batch["outcome"]) =>
    sum(of(outcome).map(({ numbers }) => numbers.length));
  const again = [...counts].map(([id, times]) => ({ id, times: times - 1 }));
  return {
    acknowledged: countEvents("acknowledged"),
    refused: countEvents("refused"),
    unanswered: countEvents("unanswered"),
    received: sum(counts.values()),
    lost: sum(of("acknowledged").map((batch) => wanted(batch).length - cameOf(batch))),
    sentThoughRefused: sum(of("refused").map(cameOf)),
    halfStored: of("unanswered")
      .filter((batch) => cameOf(batch) > 0 && cameOf(batch) < wanted(batch).length).length,
    duplicates: sum(again.map(({ times }) => times)),
    inFlight: sum(inFlight.values()),
    unexplained: sum(again.map(({ id, times }) => Math.max(0, times - (inFlight.get(id) ?? 0)))),
    torn: torn.size,
  };
}
