import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import { afterAttempt, isSuccess, type ResendPolicy } from "../event/delivery.ts";
import { OWN_PREFIX } from "../event/event.ts";
import type { Database, Statement } from "../store/database.ts";
import {
  claimDeliveries,
  type ClaimedDelivery,
  findNextDue,
  listDueLanes,
  recordAttempt,
  releaseDeliveries,
} from "../store/deliveries.ts";
import { fanOut, insertEvent, listPendingEvents } from "../store/events.ts";
import { disableSubscription } from "../store/subscriptions.ts";
import type { CallbackResult, SendCallback } from "./callback.ts";
import { createLanes, type LaneLimits } from "./lanes.ts";

/** What the distributor works with. */
export interface DistributorOptions {
  readonly database: Database;
  readonly send: SendCallback;
  readonly seal: Seal;
  readonly limits: LaneLimits;
  readonly policy: ResendPolicy;
  /** Of one attempt; a lease is longer. */
  readonly timeoutMs: number;
  /** A subscription whose attempts have all failed for so long is disabled; 0 = never. */
  readonly disableAfterMs: number;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
  /** Told of every attempt, for the metrics. */
  readonly observe: (isSuccess: boolean, ms: number) => void;
}

/** Sends what has been dispatched. */
export interface Distributor {
  /** Does all that is due; called by the interval, and at once after a dispatch. Never throws. */
  wake(): void;
  /** Awaits attempts in flight for at most `graceMs`, cuts off the rest, gives unsent work back. */
  stop(graceMs: number): Promise<void>;
  /** When it last finished looking for work, in milliseconds since 1970. */
  lastRoundMs(): number;
  inFlight(): number;
}

const EVENTS_AT_ONCE = 32;
const DELIVERIES_AT_ONCE = 500;
// Beyond an attempt's own time: for the turn in the lane before it, and for recording it after.
const LEASE_MARGIN_MS = 30_000;

/** Makes a distributor; it does nothing before the first `wake`. */
export function createDistributor(options: DistributorOptions): Distributor {
  const { database, now, log } = options;
  const lanes = createLanes<ClaimedDelivery>(options.limits);
  const claim = newId("c", now());
  const cutOff = new AbortController();
  const attempts = new Set<Promise<void>>();
  let round: Promise<void> | undefined;
  let again = false;
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let lastRoundMs = now();

  function wake(): void {
    if (stopping) return;
    again = true;
    round ??= runRounds().finally(() => {
      round = undefined;
    });
  }

  async function runRounds(): Promise<void> {
    while (again && !stopping) {
      again = false;
      try {
        await distribute();
        await fill();
      } catch (error) {
        log.warn("distribution is held up", { error }); // the interval tries again
      }
      lastRoundMs = now();
      sendAll();
    }
  }

  /** Fans pending events out, part by part, so that a large one does not hold up the small ones. */
  async function distribute(): Promise<void> {
    const events = await listPendingEvents(database, EVENTS_AT_ONCE);
    if (events.length === 0) return;
    await Promise.all(events.map((event) => fanOut(database, event, DELIVERIES_AT_ONCE, now())));
    again = true;
  }

  /** Claims due deliveries for the lanes that have room. */
  async function fill(): Promise<void> {
    const nowMs = now();
    const limit = 2 * options.limits.total - lanes.inFlight() - lanes.waiting();
    if (limit <= 0) return;
    const query = { except: lanes.full(), limit, nowMs };
    const due = [
      ...await listDueLanes(database, { ...query, failing: false }),
      ...lanes.hasRoomForFailing() ? await listDueLanes(database, { ...query, failing: true }) : [],
    ];
    const share = Math.max(1, Math.floor(limit / Math.max(1, due.length)));
    const requests = due.slice(0, limit).map(({ subscription, isFailing }) => ({
      subscription,
      count: Math.min(share, lanes.room(subscription, isFailing === true)),
      isFailing,
    })).filter(({ count }) => count > 0);
    if (requests.length === 0) return planNext(nowMs);
    const leaseUntilMs = nowMs + 2 * options.timeoutMs + LEASE_MARGIN_MS;
    const claimed = await claimDeliveries(database, requests, claim, leaseUntilMs, nowMs);
    for (const { subscription, isFailing } of requests) {
      lanes.add(
        subscription,
        isFailing,
        claimed.filter((delivery) => delivery.subscription === subscription),
      );
    }
    if (claimed.length > 0) again = true;
  }

  /** Nothing is due: wakes up when the next resend is, where that is before the next interval. */
  async function planNext(nowMs: number): Promise<void> {
    const nextMs = await findNextDue(database, nowMs);
    clearTimeout(timer);
    if (nextMs === undefined || stopping) return;
    timer = setTimeout(wake, Math.min(nextMs - nowMs, 60_000));
    timer.unref();
  }

  function sendAll(): void {
    if (stopping) return;
    for (let next = lanes.take(); next !== undefined; next = lanes.take()) {
      const attempt = attemptDelivery(next.item).finally(() => attempts.delete(attempt));
      attempts.add(attempt);
    }
  }

  async function attemptDelivery(delivery: ClaimedDelivery): Promise<void> {
    const startedAtMs = now();
    let result: CallbackResult | undefined;
    try {
      result = await options.send({
        deliveryId: delivery.id,
        event: delivery.event,
        json: delivery.json,
        endpoint: delivery.endpoint,
        attempt: delivery.attempt + 1,
        secrets: openSecrets(delivery, options.seal, startedAtMs),
      }, cutOff.signal);
    } catch (error) {
      log.error("a delivery cannot be sent", { delivery: delivery.id, error });
      result = { outcome: { kind: "error", error: "other" }, snippet: undefined };
    }
    const ok = isSuccess(result.outcome);
    const handedBack = lanes.finish(delivery.subscription, ok);
    sendAll();
    wake();
    // What this process cut off itself is no failure of the subscriber's: its lease just ends.
    if (cutOff.signal.aborted && !ok) {
      await store(releaseDeliveries([delivery], claim, now()));
      return;
    }
    options.observe(ok, now() - startedAtMs);
    await store([
      ...finishAttempt(delivery, startedAtMs, result, options, claim),
      ...handedBack.length > 0 ? releaseDeliveries(handedBack, claim, now()) : [],
    ]);
  }

  /** Tries until it is stored or the process ends: then the lease brings the delivery back. */
  async function store(statements: readonly Statement[]): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
      try {
        await database.write(statements);
        return;
      } catch (error) {
        log.warn("an attempt cannot be recorded yet", { error });
        if (stopping) return;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  return {
    wake,
    lastRoundMs: () => lastRoundMs,
    inFlight: lanes.inFlight,
    async stop(graceMs) {
      stopping = true;
      clearTimeout(timer);
      await round;
      const unsent = lanes.drain();
      const grace = setTimeout(() => cutOff.abort(new DOMException("Stopping", "AbortError")), graceMs);
      if (unsent.length > 0) await store(releaseDeliveries(unsent, claim, now()));
      await Promise.all(attempts);
      clearTimeout(grace);
    },
  };
}

function openSecrets(delivery: ClaimedDelivery, seal: Seal, nowMs: number): string[] {
  const { secret, oldSecret, oldSecretUntilMs, subscriptionId } = delivery;
  const old = oldSecret !== null && (oldSecretUntilMs ?? 0) > nowMs ? [oldSecret] : [];
  return [secret, ...old].map((stored) => seal.open(stored, subscriptionId));
}

/** All that follows from one attempt, as one batch. */
function finishAttempt(
  delivery: ClaimedDelivery,
  startedAtMs: number,
  { outcome, snippet }: CallbackResult,
  { policy, now, random }: DistributorOptions,
  claim: string,
): Statement[] {
  const nowMs = now();
  const attempt = delivery.attempt + 1;
  const next = afterAttempt(attempt, outcome, policy, nowMs, random());
  const record = recordAttempt({
    delivery: delivery.id,
    subscription: delivery.subscription,
    claim,
    attempt,
    startedAtMs,
    durationMs: nowMs - startedAtMs,
    outcome,
    snippet,
    next,
  }, nowMs);
  if (next.status !== "failed" || delivery.event.startsWith(OWN_PREFIX)) return record;
  return [
    ...record,
    ...next.gone ? disableSubscription(delivery.subscriptionId, "gone", nowMs) : [],
    insertEvent({
      id: newId("e", nowMs),
      name: "gatepost.delivery.failed",
      json: JSON.stringify({
        delivery: delivery.id,
        subscription: delivery.subscriptionId,
        event: delivery.event,
      }),
      subject: undefined,
      scopes: ["backend"],
      createdAtMs: nowMs,
    }),
  ];
}
