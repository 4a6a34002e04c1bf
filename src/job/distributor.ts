import type { Log } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import { isSuccess } from "../event/delivery.ts";
import type { Database } from "../store/database.ts";
import {
  claimDeliveries,
  type ClaimedDelivery,
  findNextDue,
  listDueLanes,
  listSendable,
  type SendableDelivery,
  STANDINGS,
} from "../store/deliveries.ts";
import { fanOut, listPendingEvents, settleUnheard } from "../store/events.ts";
import type { CallbackResult, CallbackSender } from "./callback.ts";
import type { AfterAttemptRules } from "./finish_attempt.ts";
import { createLanes, type LaneLimits } from "./lanes.ts";
import { openSecrets } from "./open_secrets.ts";
import { createRecorder } from "./recorder.ts";
import { shareOut } from "./share_out.ts";

/** What the distributor works with. */
export interface DistributorOptions extends AfterAttemptRules {
  readonly database: Database;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  readonly sender: CallbackSender;
  readonly seal: Seal;
  readonly limits: LaneLimits;
  /** Of one attempt; a lease is longer. */
  readonly timeoutMs: number;
  readonly log: Log;
  /** Goes on evenly although the clock is set, until `followClock` has shifted what is stored. */
  readonly now: () => number;
  /** Whether that is to come: until then nothing is claimed or sent. */
  readonly isClockSet: () => boolean;
  /** Told of every attempt, for the metrics. */
  readonly observe: (isSuccess: boolean, ms: number) => void;
}

/** Sends what has been dispatched. */
export interface Distributor {
  /** Does all that is due; called by the interval, and at once after a dispatch. Never throws. */
  wake(): void;
  /** Has `shift` move all stored times by so many milliseconds, as `now` is to be moved after it. */
  followClock(stepMs: number, shift: () => Promise<void>): Promise<void>;
  /** Awaits attempts in flight for at most `graceMs`, cuts off the rest, gives unsent work back. */
  stop(graceMs: number): Promise<void>;
  /** When it last looked for work without an error, in milliseconds since 1970. */
  lastRoundMs(): number;
  inFlight(): number;
}

const EVENTS_AT_ONCE = 256;
const FANNED_OUT_AT_ONCE = 32;
const DELIVERIES_AT_ONCE = 500;
const SENT_AT_ONCE = 8;
const GATHER_MS = 8;
/** Between two rounds where the first left nothing over. */
const PAUSE_MS = 4;
/** After an error of the database. */
const RETRY_MS = 1000;
// Beyond an attempt's own time: for the turn in the lane before it, and for recording it after.
const LEASE_MARGIN_MS = 30_000;

/** Makes a distributor; it does nothing before the first `wake`. */
export function createDistributor(options: DistributorOptions): Distributor {
  const { database, sender, now, log, claim } = options;
  const lanes = createLanes<ClaimedDelivery>(options.limits);
  const attempts = new Set<Promise<void>>();
  const recorder = createRecorder({ ...options, gather, isStopping: () => stopping });
  let round: Promise<void> | undefined;
  let gathering: Promise<void> | undefined;
  let isSending = false;
  let again = false;
  let stopping = false;
  let isCutOff = false;
  let timer: NodeJS.Timeout | undefined;
  let lastRoundMs = now();
  let lastLeaseMs = 0;

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

  /**
   * Fans pending events out, part by part, so that a large one does not hold up the small ones.
   * Whether there were any: then there may be more.
   */
  async function distribute(): Promise<boolean> {
    const events = await listPendingEvents(database, EVENTS_AT_ONCE);
    if (events.length === 0) return false;
    const heard = events.filter(({ isHeard }) => isHeard).slice(0, FANNED_OUT_AT_ONCE);
    await Promise.all([
      settleUnheard(database, events.filter(({ isHeard }) => !isHeard)),
      ...heard.map((event) => fanOut(database, event, DELIVERIES_AT_ONCE, now())),
    ]);
    return true;
  }

  /** Claims due deliveries for the lanes that have room. */
  async function fill(): Promise<void> {
    const nowMs = now();
    const limit = lanes.roomFor("proven");
    if (limit <= 0) return;
    const query = { except: lanes.full(), nowMs };
    const kinds = await Promise.all(STANDINGS.map((standing) =>
      listDueLanes(database, { ...query, standing, limit: Math.min(limit, lanes.roomFor(standing)) })
    ));
    const requests = shareOut(kinds, lanes);
    if (requests.length === 0) return planNext(nowMs);
    for (const { subscription, standing } of requests) lanes.open(subscription, standing);
    try {
      // Later than every one before: claims are told apart by it.
      lastLeaseMs = Math.max(lastLeaseMs + 1, nowMs + 2 * options.timeoutMs + LEASE_MARGIN_MS);
      const claimed = await claimDeliveries(database, requests, claim, lastLeaseMs, nowMs);
      for (const delivery of claimed) lanes.add(delivery.subscription, [delivery]);
      if (claimed.length > 0) void gather();
      else await planNext(nowMs); // others were faster
    } finally {
      for (const { subscription } of requests) lanes.settle(subscription);
    }
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

  /** Sends what may be sent, few in one turn of the loop, so that whatever else there is has its. */
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
      const next = stopping || options.isClockSet() ? undefined : lanes.take();
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
    lanes.settle(subscription);
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
      return await listSendable(database, ids, claim, {
        enoughMs: options.timeoutMs,
        nowMs: now(),
      });
    } catch (error) {
      log.warn("deliveries cannot be read", { deliveries: ids, error });
      return [];
    }
  }

  async function giveBack(unsent: readonly ClaimedDelivery[]): Promise<void> {
    if (unsent.length === 0) return;
    for (const { subscription } of unsent) lanes.finish(subscription, undefined);
    sendAll();
    await recorder.release(unsent);
  }

  async function sendDelivery(delivery: SendableDelivery): Promise<void> {
    const startedAtMs = now();
    const startedMs = performance.now(); // by a clock that is never set
    const attempt = delivery.attempt + 1;
    let result: CallbackResult;
    try {
      result = await sender.send({
        deliveryId: delivery.id,
        event: delivery.event,
        json: delivery.json,
        endpoint: delivery.endpoint,
        attempt,
        secrets: openSecrets(delivery, options.seal, startedAtMs),
      });
    } catch (error) {
      log.error("a delivery cannot be sent", { delivery: delivery.id, error });
      result = { outcome: { kind: "error", error: "other" }, snippet: undefined };
    }
    const ok = isSuccess(result.outcome);
    const handedBack = lanes.finish(delivery.subscription, ok);
    sendAll();
    // What this process cut off itself is no failure of the subscriber's: its lease just ends.
    if (isCutOff && !ok) return recorder.release([delivery]);
    const durationMs = Math.round(performance.now() - startedMs);
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
        ...result,
      }),
      ...handedBack.length > 0 ? [gather().then(() => recorder.release(handedBack))] : [],
    ]);
  }

  return {
    wake,
    async followClock(stepMs, shift) {
      await round;
      await shift();
      lastLeaseMs += stepMs;
      lastRoundMs += stepMs;
    },
    lastRoundMs: () => lastRoundMs,
    inFlight: lanes.inFlight,
    async stop(graceMs) {
      stopping = true;
      clearTimeout(timer);
      await round;
      const unsent = lanes.drain();
      const grace = setTimeout(() => {
        isCutOff = true;
        sender.cutOff();
      }, graceMs);
      if (unsent.length > 0) await recorder.release(unsent);
      await Promise.all(attempts);
      clearTimeout(grace);
    },
  };
}
