import { oneAtATime } from "../base/one_at_a_time.ts";
import { LEAST_STEP_MS, type SteadyClock } from "../base/steady_clock.ts";
import type { ClockCheck } from "../database/engine_in_thread.ts";
import { countClockSteps, createShift, takeClockStep } from "../store/clock_shift.ts";
import type { Distributor, DistributorOptions } from "./distributor.ts";

/**
 * Makes the watch over the system clock. If it has been set, the times of all that waits are
 * shifted by as much, once for all processes on the database, so that nothing waits longer or less.
 * Where it has been set wrong on this machine alone nothing is shifted, and `clock` goes on.
 */
export function createClockWatch(
  { database, log }: Pick<DistributorOptions, "database" | "log">,
  clock: SteadyClock,
  clockCheck: ClockCheck,
  distributor: () => Pick<Distributor, "followClock">,
) {
  let lastCount: number | undefined;
  /** Whether `clock` agrees with other machines', and how wrong the system clock has been set. */
  let found = { isRight: true, ignoredMs: 0 };
  let following: { stepMs: number; shiftMs: number; shift: () => Promise<void> } | undefined;

  const isSet = () => Math.abs(clock.stepMs() - found.ignoredMs) >= LEAST_STEP_MS;

  async function notice(): Promise<void> {
    const { isRight, ignoredMs } = found;
    // Read first: a step after this cannot have been counted by another process yet.
    const count = await countClockSteps(database);
    const isNew = isRight && count === (lastCount ?? count);
    const stepMs = clock.stepMs();
    const looked = clockCheck.look();
    // Where another has counted a step, this machine may be the last to be set. Else not waited
    // for: a node that is silent would hold up everything for a second.
    if (count !== lastCount || !isRight || stepMs !== 0) await looked;
    lastCount = count;
    const agrees = clockCheck.state() === "ok";
    if (stepMs === 0) {
      found = { isRight: ignoredMs === 0 ? agrees : isRight, ignoredMs: 0 };
      clock.follow();
    } else if (!agrees) {
      if (isSet()) log.warn("the clock has been set, and only here: it is wrong", { ms: stepMs });
      found = { isRight, ignoredMs: stepMs };
    } else {
      log.warn(`the clock has been set; what waits ${isRight ? "is shifted" : "stays"}`, {
        ms: stepMs,
      });
      // The process that has counted it since the last check shifts for all.
      const isMine = isNew && await takeClockStep(database, count);
      const shift = isMine ? createShift(database, clock.now(), stepMs) : () => Promise.resolve();
      following = { stepMs, shiftMs: isRight ? stepMs : 0, shift };
      if (isNew) lastCount++;
    }
  }

  async function check(): Promise<void> {
    if (following === undefined) await notice();
    if (following === undefined) return;
    // If the database does not take all of it now, the next check continues.
    await distributor().followClock(following.shiftMs, following.shift);
    clock.follow(following.stepMs); // and no further: it may have been set again meanwhile
    following = undefined;
    found = { isRight: true, ignoredMs: 0 };
  }

  return {
    /** Looks whether it has been set; rejects where the database does not take what follows. */
    check: oneAtATime(check),
    /** Whether `clock` is right, as was found: else nothing is to be claimed or sent. */
    isRight: () => lastCount !== undefined && found.isRight && !isSet(),
  };
}
