import type { Log } from "../base/log.ts";
import type { SteadyClock } from "../base/steady_clock.ts";
import { countClockSteps, createShift, takeClockStep } from "../store/clock_shift.ts";
import type { Database } from "../database/database.ts";
import type { Distributor } from "./distributor.ts";

/** What the watch works with. */
export interface ClockWatchOptions {
  readonly database: Database;
  readonly clock: SteadyClock;
  readonly distributor: Pick<Distributor, "followClock">;
  readonly log: Log;
}

/**
 * Makes the look whether the clock on the wall has been set. If so, all that waits is shifted by as
 * much, once for all processes on the database, so that none of it waits longer or less for it.
 */
export function createClockWatch(options: ClockWatchOptions): () => Promise<void> {
  const { database, clock, distributor, log } = options;
  let lastCount: number | undefined;
  let following: { readonly stepMs: number; readonly shift: () => Promise<void> } | undefined;

  async function notice(): Promise<void> {
    // Read first: a step after this is one that nobody can have counted yet.
    const count = await countClockSteps(database);
    const stepMs = clock.stepMs();
    // Who counted it since the last look, when it was still to come, shifts for all.
    const isNew = stepMs !== 0 && count === (lastCount ?? count);
    if (stepMs === 0) clock.follow();
    else {
      log.warn("the clock has been set; what waits is shifted", { ms: stepMs });
      const isMine = isNew && await takeClockStep(database, count);
      const shift = isMine ? createShift(database, clock.now(), stepMs) : () => Promise.resolve();
      following = { stepMs, shift };
    }
    lastCount = isNew ? count + 1 : count;
  }

  return async () => {
    if (following === undefined) await notice();
    if (following === undefined) return;
    // Should the database not take all of it now, the next look goes on with the rest.
    await distributor.followClock(following.stepMs, following.shift);
    clock.follow(following.stepMs); // and no further: it may have been set again meanwhile
    following = undefined;
  };
}
