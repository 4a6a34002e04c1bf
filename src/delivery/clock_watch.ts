import type { SteadyClock } from "../base/steady_clock.ts";
import { countClockSteps, createShift, takeClockStep } from "../store/clock_shift.ts";
import type { Distributor, DistributorOptions } from "./distributor.ts";

/**
 * Makes the check whether the system clock has been set. If so, the times of all that waits are
 * shifted by as much, once for all processes on the database, so that nothing waits longer or less.
 */
export function createClockWatch(
  { database, log }: Pick<DistributorOptions, "database" | "log">,
  clock: SteadyClock,
  distributor: Pick<Distributor, "followClock">,
): () => Promise<void> {
  let lastCount: number | undefined;
  let following: { readonly stepMs: number; readonly shift: () => Promise<void> } | undefined;

  async function notice(): Promise<void> {
    // Read first: a step after this cannot have been counted by another process yet.
    const count = await countClockSteps(database);
    const stepMs = clock.stepMs();
    // The process that has counted it since the last check shifts for all.
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
    // If the database does not take all of it now, the next check continues.
    await distributor.followClock(following.stepMs, following.shift);
    clock.follow(following.stepMs); // and no further: it may have been set again meanwhile
    following = undefined;
  };
}
