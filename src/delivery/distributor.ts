import { findNextDue } from "../store/deliveries.ts";
import { fanOut, listPendingEvents, markWithoutSubscribers } from "../store/events.ts";
import type { QueueLimits } from "./capacity.ts";
import { chooseFanOuts } from "./choose_fan_outs.ts";
import { createClaimer } from "./claimer.ts";
import { createQueues } from "./queues.ts";
import { createRecorder, type RecorderOptions } from "./recorder.ts";
import { createRounds } from "./rounds.ts";
import { createSender, type SenderOptions } from "./sender.ts";
import { createShortageWatch } from "./shortage.ts";

/** What the distributor works with. */
export interface DistributorOptions extends SenderOptions, RecorderOptions {
  readonly limits: QueueLimits;
  /** Whether the clock has been set and `followClock` is to come: until then nothing is sent. */
  readonly isClockSet: () => boolean;
}

/** Sends what has been dispatched. */
export interface Distributor {
  /** Does all that is due; called by the interval, and at once after a dispatch. Never throws. */
  wake(): void;
  /** Has `shift` move all stored times by so many milliseconds, and `now` with them. */
  followClock(stepMs: number, shift: () => Promise<void>): Promise<void>;
  /** Releases unsent claims, awaits attempts for at most `graceMs`, and aborts those left. */
  stop(graceMs: number): Promise<void>;
  /** When it last looked for work without an error, in milliseconds since 1970. */
  lastRoundMs(): number;
  inFlight(): number;
  /** The code of what the service itself has lacked to send, within the last seconds. */
  shortage(): string | undefined;
}

const EVENTS_AT_ONCE = { oldest: 224, newest: 32 };
/** After an error of the database; the interval may be longer. */
const RETRY_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** Makes a distributor; it does nothing before the first `wake`. */
export function createDistributor(options: DistributorOptions): Distributor {
  const { database, now, log } = options;
  let isStopping = false;
  let lastRoundMs = now();
  const isActive = () => !isStopping && !options.isClockSet();
  const rounds = createRounds(runRound, isActive);
  const { gather } = rounds;
  const queues = createQueues(options.limits);
  const shortages = createShortageWatch({ log, now });
  const claimer = createClaimer(options, queues);
  const recorder = createRecorder(options, gather, () => isStopping);
  const sender = createSender(options, { queues, recorder, shortages, maySend: isActive, gather });

  /** Returns whether there were events to fan out: then there may be more. */
  async function runRound(): Promise<boolean> {
    let isMore = false;
    try {
      isMore = await fanOutEvents();
      await claim();
      lastRoundMs = now();
    } catch (error) {
      log.warn("distribution is held up", { error });
      rounds.wakeIn(RETRY_MS);
    }
    sender.send();
    return isMore;
  }

  /** Makes deliveries of pending events, some of each. */
  async function fanOutEvents(): Promise<boolean> {
    const events = await listPendingEvents(database, EVENTS_AT_ONCE);
    if (events.length === 0) return false;
    const { chosen, limit } = chooseFanOuts(events.filter(({ hasSubscribers }) => hasSubscribers));
    await Promise.all([
      markWithoutSubscribers(database, events.filter(({ hasSubscribers }) => !hasSubscribers)),
      ...chosen.map((event) => fanOut(database, event, limit, now())),
    ]);
    return true;
  }

  /** Claims what is due, and where nothing is, wakes when the next delivery will be. */
  async function claim(): Promise<void> {
    const nowMs = now();
    const pauseMs = shortages.pauseMs();
    if (pauseMs > 0) return rounds.wakeIn(pauseMs);
    const claimed = await claimer.claim(nowMs);
    if (claimed === undefined) return;
    if (claimed > 0) return void gather();
    const nextMs = await findNextDue(database, nowMs) ?? Infinity;
    rounds.wakeIn(Math.min(nextMs - nowMs, LONGEST_WAIT_MS));
  }

  return {
    wake: rounds.wake,
    async followClock(stepMs, shift) {
      await rounds.idle();
      await shift();
      claimer.followClock(stepMs);
      lastRoundMs += stepMs;
    },
    async stop(graceMs) {
      isStopping = true;
      await rounds.idle();
      await sender.stop(graceMs);
    },
    lastRoundMs: () => lastRoundMs,
    inFlight: queues.inFlight,
    shortage: shortages.current,
  };
}
