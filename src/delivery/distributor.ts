import type { Log } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import { isSuccess } from "../event/delivery.ts";
import type { Database } from "../database/database.ts";
import {
  type ClaimedDelivery,
  findNextDue,
  listSendable,
  type SendableDelivery,
} from "../store/deliveries.ts";
import { fanOut, listPendingEvents, markWithoutSubscribers } from "../store/events.ts";
import { chooseFanOuts } from "./choose_fan_outs.ts";
import type { CallbackResult, CallbackSender, Unsent } from "./callback.ts";
import type { QueueLimits } from "./capacity.ts";
import { createClaimer } from "./claimer.ts";
import type { AfterAttemptRules } from "./finish_attempt.ts";
import { createQueues } from "./queues.ts";
import { decryptSecrets } from "./decrypt_secrets.ts";
import { createRecorder } from "./recorder.ts";
import { createWantWatch } from "./shortage.ts";

/** What the distributor works with. */
export interface DistributorOptions extends AfterAttemptRules {
  readonly database: Database;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  readonly sender: CallbackSender;
  readonly seal: Seal;
  readonly limits: QueueLimits;
  /** Of one attempt; a lease is longer. */
  readonly timeoutMs: number;
  readonly log: Log;
  /** Goes on evenly although the clock is set, until `followClock` has shifted what is stored. */
  readonly now: () => number;
  /** A clock that is never set, which attempts are timed by. */
  readonly elapsedMs: () => number;
  /** Whether that is to come: until then nothing is claimed or sent. */
  readonly isClockSet: () => boolean;
  /** Told of every attempt, for the metrics. */
  readonly observe: (isSuccess: boolean, ms: number) => void;
}

/** Sends what has been dispatched. */
export interface Distributor {
  /** Does all that is due; called by the interval, and at once after a dispatch. Never throws. */
  wake(): void;
  /**
   * Has `shift` move all stored times by so many milliseconds, as `now` is to be moved after it.
   */
  followClock(stepMs: number, shift: () => Promise<void>): Promise<void>;
  /** Awaits attempts in flight for at most `graceMs`, cuts off the rest, gives unsent work back. */
  stop(graceMs: number): Promise<void>;
  /** When it last looked for work without an error, in milliseconds since 1970. */
  lastRoundMs(): number;
  inFlight(): number;
  /** The code of what the service itself has lacked to send, within the last seconds. */
  want(): string | undefined;
}

const EVENTS_AT_ONCE = { oldest: 224, newest: 32 };
const SENT_AT_ONCE = 8;
const GATHER_MS = 8;
/** Between two rounds where the first left nothing over. */
const PAUSE_MS = 4;
/** After an error of the database. */
const RETRY_MS = 1000;

/** Makes a distributor; it does nothing before the first `wake`. */
export function createDistributor(options: DistributorOptions): Distributor {
  const { database, sender, now, elapsedMs, log, claim } = options;
  const queues = createQueues<ClaimedDelivery>(options.limits);
  const claimer = createClaimer({ ...options, queues });
  const wants = createWantWatch({ log, now });
  const attempts = new Set<Promise<void>>();
  const recorder = createRecorder({ ...options, gather, isStopping: () => stopping });
  let round: Promise<void> | undefined;
  let gathering: Promise<void> | undefined;
  let isSending = false;
  let again = false;
  let stopping = false;
  let isAborted = false;
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
    while (again && !stopping && !options.isClockSet()) {
      again = false;
      let isMore = false;
      try {
        isMore = await distribute();
        await fill();
        lastRoundMs = now();
      } catch (error) {
        log.warn("distribution is held up", { error });
        wakeIn(RETRY_MS); // the interval may be long
      }
      sendAll();
      // What was dispatched meanwhile is taken up with what comes in the next moment.
      if (again && !isMore) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      again ||= isMore;
    }
  }

  /** Fans pending events out, part by part. Whether there were any: then there may be more. */
  async function distribute(): Promise<boolean> {
    const events = await listPendingEvents(database, EVENTS_AT_ONCE);
    if (events.length === 0) return false;
    const { chosen, limit } = chooseFanOuts(events.filter(({ hasSubscribers }) => hasSubscribers));
    await Promise.all([
      markWithoutSubscribers(database, events.filter(({ hasSubscribers }) => !hasSubscribers)),
      ...chosen.map((event) => fanOut(database, event, limit, now())),
    ]);
    return true;
  }

  async function fill(): Promise<void> {
    const nowMs = now();
    const pauseMs = wants.pauseMs();
    if (pauseMs > 0) return wakeIn(pauseMs);
    const claimed = await claimer.claim(nowMs);
    if (claimed === undefined) return;
    if (claimed > 0) void gather();
    else await planNext(nowMs);
  }

  /** Nothing is due: wakes up when the next resend is, where that is before the next interval. */
  async function planNext(nowMs: number): Promise<void> {
    const nextMs = await findNextDue(database, nowMs);
    clearTimeout(timer);
    if (nextMs !== undefined) wakeIn(Math.min(nextMs - nowMs, 60_000));
  }

  function wakeIn(ms: number): void {
    clearTimeout(timer);
    if (stopping) return;
    timer = setTimeout(wake, ms);
    timer.unref();
  }

  /**
   * Sends what may be sent, few in one turn of the loop, so that whatever else there is has its.
   */
  function sendAll(): void {
    if (isSending || stopping) return;
    isSending = true;
    setImmediate(() => {
      isSending = false;
      const turn = takeTurn();
      if (turn.length === 0) return;
      const attempt = attemptDeliveries(turn).finally(() => attempts.delete(attempt));
      attempts.add(attempt);
      sendAll();
    });
  }

  function takeTurn(): ClaimedDelivery[] {
    const turn: ClaimedDelivery[] = [];
    while (turn.length < SENT_AT_ONCE) {
      const mayTake = !stopping && !options.isClockSet() && wants.pauseMs() === 0;
      const next = mayTake ? queues.take() : undefined;
      if (next === undefined) break;
      turn.push(next.item);
    }
    return turn;
  }

  async function attemptDeliveries(claimed: readonly ClaimedDelivery[]): Promise<void> {
    const found = await listStillDue(claimed);
    const ids = new Set(found.map(({ id }) => id));
    const left = claimed.filter(({ id }) => !ids.has(id));
    await Promise.all([
      ...found.map((delivery) => sendDelivery(delivery).finally(() => settle(delivery))),
      giveBack(left).finally(() => left.forEach(settle)),
    ]);
  }

  function settle({ subscription }: ClaimedDelivery): void {
    queues.settle(subscription);
    void gather();
  }

  /** What ends within a few milliseconds is recorded, and replaced by new claims, in one commit. */
  function gather(): Promise<void> {
    gathering ??= new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(() => {
      gathering = undefined;
      wake();
    });
    return gathering;
  }

  /** They may have waited for their turn: what was paused, ended or changed since must count. */
  async function listStillDue(claimed: readonly ClaimedDelivery[]): Promise<SendableDelivery[]> {
    const ids = claimed.map(({ id }) => id);
    try {
      return await listSendable(database, ids, claim, now() + options.timeoutMs);
    } catch (error) {
      log.warn("deliveries cannot be read", { deliveries: ids, error });
      return [];
    }
  }

  async function giveBack(unsent: readonly ClaimedDelivery[]): Promise<void> {
    if (unsent.length === 0) return;
    for (const { subscription } of unsent) queues.finish(subscription, undefined);
    sendAll();
    await recorder.release(unsent);
  }

  async function sendDelivery(delivery: SendableDelivery): Promise<void> {
    const startedAtMs = now();
    const startedMs = elapsedMs();
    const attempt = delivery.attempt + 1;
    let result: CallbackResult | Unsent;
    try {
      result = await sender.send({
        deliveryId: delivery.id,
        event: delivery.event,
        json: delivery.json,
        endpoint: delivery.endpoint,
        attempt,
        secrets: decryptSecrets(delivery, options.seal, startedAtMs),
      });
    } catch (error) {
      log.error("a delivery cannot be sent", { delivery: delivery.id, error });
      result = { outcome: { kind: "error", error: "other" }, snippet: undefined };
    }
    if ("want" in result) return putOff(delivery, result);
    const ok = isSuccess(result.outcome);
    const durationMs = Math.round(elapsedMs() - startedMs);
    const fared = { isSuccess: ok, durationMs };
    const { handedBack, meanMs } = queues.finish(delivery.subscription, fared);
    sendAll();
    // What this process cut off itself is no failure of the subscriber's: its lease just ends.
    if (isAborted && !ok) return recorder.release([delivery]);
    options.observe(ok, durationMs);
    const { id, subscription, endpoint } = delivery;
    await Promise.all([
      recorder.record({
        delivery: id,
        subscription,
        endpoint,
        attempt,
        startedAtMs,
        durationMs,
        meanMs,
        ...result,
      }),
      ...handedBack.length > 0 ? [gather().then(() => recorder.release(handedBack))] : [],
    ]);
  }

  /** What was not sent for want of something of the service's own is no attempt. */
  function putOff(delivery: ClaimedDelivery, { want }: Unsent): Promise<void> {
    wants.note(want);
    queues.finish(delivery.subscription, undefined);
    return recorder.release([delivery], wants.pauseMs());
  }

  return {
    wake,
    async followClock(stepMs, shift) {
      await round;
      await shift();
      claimer.followClock(stepMs);
      lastRoundMs += stepMs;
    },
    lastRoundMs: () => lastRoundMs,
    inFlight: queues.inFlight,
    want: wants.current,
    async stop(graceMs) {
      stopping = true;
      clearTimeout(timer);
      await round;
      const unsent = queues.drain();
      const grace = setTimeout(() => {
        isAborted = true;
        sender.abort();
      }, graceMs);
      if (unsent.length > 0) await recorder.release(unsent);
      await Promise.all(attempts);
      clearTimeout(grace);
    },
  };
}
