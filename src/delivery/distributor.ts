import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import { findNextDue, type SendableDelivery } from "../store/deliveries.ts";
import { findFanOutPart, listPendingEvents } from "../store/fan_out.ts";
import { continueResends } from "../store/resends.ts";
import { wakePaused } from "../store/subscriptions.ts";
import type { Services } from "../services.ts";
import type { CallbackSender } from "./callback.ts";
import { chooseFanOuts } from "./choose_fan_outs.ts";
import { createClaimer } from "./claimer.ts";
import { createQueues } from "./queues.ts";
import { createRecorder } from "./recorder.ts";
import { createRounds } from "./rounds.ts";
import { createSender } from "./sender.ts";
import { createShortageWatch } from "./shortage_watch.ts";
import type { WorkerSettings } from "./worker_messages.ts";

/** What the distributor and its parts work with. */
export interface DistributorOptions extends Pick<Services, "database" | "log" | "seal"> {
  readonly settings: WorkerSettings;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  readonly callbacks: CallbackSender;
  /** Milliseconds since 1970, shifted only together with what is stored (see `followClock`). */
  readonly now: () => number;
  /** Milliseconds by a clock that is never set, which attempts and pauses are timed by. */
  readonly elapsedMs: () => number;
  /** Whether `now` is right. If not, nothing is sent, for example until `followClock` is called. */
  readonly isClockRight: () => boolean;
  /** A number from 0 to 1. */
  readonly random: () => number;
  /** Called once an attempt has been recorded: for metrics, figures and streams. */
  readonly observe: (of: SendableDelivery, isSuccess: boolean, isLast: boolean, ms: number) => void;
}

/** Makes the deliveries of dispatched events, and sends them. */
export type Distributor = ReturnType<typeof createDistributor>;

const EVENTS_AT_ONCE = { oldest: 224, newest: 32 };
/** The wait after an error of the database, since the next interval may be far away. */
const RETRY_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** Makes a distributor; it does nothing before the first `wake`. */
export function createDistributor(options: DistributorOptions) {
  const { database, settings, log, now, elapsedMs } = options;
  let isStopping = false;
  let lastRoundMs = elapsedMs();
  const isActive = () => !isStopping && options.isClockRight();
  const rounds = createRounds(runRound, isActive);
  const { gather } = rounds;
  const queues = createQueues({
    total: settings.callbackConcurrency,
    perSubscription: settings.callbackConcurrencyPerSubscription,
  });
  const shortages = createShortageWatch(log, elapsedMs);
  const isNew = createRepeatCheck(elapsedMs);
  const recorder = createRecorder(options, gather, () => isStopping);
  const claimer = createClaimer(options, queues, recorder);
  const sender = createSender(options, { queues, recorder, shortages, maySend: isActive, gather });

  /** Returns whether the round made any work due; there may then be more. */
  async function runRound(): Promise<boolean> {
    let isMore = false;
    try {
      const nowMs = now();
      const [isFanningOut, isResending] = await Promise.all([
        fanOutEvents(),
        continueResends(database, nowMs),
        wakePaused(database, nowMs),
      ]);
      isMore = isFanningOut || isResending;
      sender.send();
      await claim();
      lastRoundMs = elapsedMs();
    } catch (error) {
      if (isNew(messageOf(error))) log.warn("distribution is held up", { error });
      rounds.wakeIn(RETRY_MS);
    }
    sender.send();
    return isMore;
  }

  /** Makes deliveries of the pending events, a limited number of each. */
  async function fanOutEvents(): Promise<boolean> {
    const events = await listPendingEvents(database, EVENTS_AT_ONCE);
    if (events.length === 0) return false;
    using _held = queues.hold();
    const { chosen, limit } = chooseFanOuts(events);
    const nowMs = now();
    const idleLimit = shortages.pauseMs() > 0 ? 0 : claimer.newLimit();
    const parts = chosen.map((event) =>
      findFanOutPart(database, event, { limit, idleLimit, nowMs }));
    await claimer.makeDeliveries(await Promise.all(parts), nowMs);
    return true;
  }

  /** Claims what is due. If nothing is, sets an alarm for the time of the next delivery. */
  async function claim(): Promise<void> {
    const nowMs = now();
    const pauseMs = shortages.pauseMs();
    if (pauseMs > 0) return rounds.wakeIn(pauseMs);
    // Together, since a cluster answers both in one response.
    const [wasDue, nextMs = Infinity] = await Promise.all([
      claimer.claim(nowMs),
      findNextDue(database, nowMs),
    ]);
    if (wasDue === undefined) return;
    if (wasDue) return void gather();
    rounds.wakeIn(Math.min(nextMs - nowMs, LONGEST_WAIT_MS));
  }

  return {
    /** Does all due work. Called at the interval, and at once after a dispatch. */
    wake: rounds.wake,
    /** Between two rounds, awaits `shift`, which moves stored times and `now` by `stepMs`. */
    async followClock(stepMs: number, shift: () => Promise<void>): Promise<void> {
      await rounds.idle();
      await shift();
      claimer.followClock(stepMs);
    },
    /** Releases unsent claims, awaits attempts for at most `graceMs`, then aborts the rest. */
    async stop(graceMs: number): Promise<void> {
      isStopping = true;
      await rounds.idle();
      await sender.stop(graceMs);
    },
    /** How long ago it last looked for work without an error, in milliseconds. */
    quietMs: () => elapsedMs() - lastRoundMs,
    inFlight: queues.inFlight,
    /** The error code of the shortage that has kept callbacks back within the last seconds. */
    shortage: shortages.current,
  };
}
