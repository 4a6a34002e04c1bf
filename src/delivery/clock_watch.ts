import { oneAtATime } from "../base/one_at_a_time.ts";
import { LEAST_STEP_MS, type SteadyClock } from "../base/steady_clock.ts";
import type { ClockCheck } from "../database/engine_in_thread.ts";
import { countClockSteps, createShift, takeClockStep } from "../store/clock_shift.ts";
import type { Distributor, DistributorOptions } from "./distributor.ts";

/**
 * Makes the watch over the system clock. If somebody sets the clock, all stored times of waiting
 * work are shifted by the same amount, once for all processes on the database, so that nothing
 * waits longer or shorter. If it is set wrong on this machine only, nothing is shifted.
 */
export function createClockWatch(
  { database, log }: Pick<DistributorOptions, "database" | "log">,
  clock: SteadyClock,
  clockCheck: ClockCheck,
  distributor: () => Pick<Distributor, "followClock">,
) {
  let lastCount: number | undefined;
  /** Whether `clock` agrees with other machines, and by how much the system clock is wrong. */
  let found = { isRight: true, ignoredMs: 0 };
  let following: { stepMs: number; shiftMs: number; shift: () => Promise<void> } | undefined;

  const isSet = () => Math.abs(clock.stepMs() - found.ignoredMs) >= LEAST_STEP_MS;

  async function notice(): Promise<void> {
    const { isRight, ignoredMs } = found;
    // Read before the clock, or another process might already have counted the step found here.
    const count = await countClockSteps(database);
    const isNew = isRight && count === (lastCount ?? count);
    const stepMs = clock.stepMs();
    const looked = clockCheck.look();
    // If another process has counted a step, this machine may just be the last to be set. Without
    // any step the look is not awaited, since a silent node would hold everything up for a second.
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
      // The one process that manages to count the step shifts the times for all.
      const isMine = isNew && await takeClockStep(database, count);
      const shift = isMine ? createShift(database, clock.now(), stepMs) : () => Promise.resolve();
      following = { stepMs, shiftMs: isRight ? stepMs : 0, shift };
      if (isNew) lastCount++;
    }
  }

  async function check(): Promise<void> {
    if (following === undefined) await notice();
    if (following === undefined) return;
    // If the database does not store the whole shift now, the next check continues it.
    await distributor().followClock(following.shiftMs, following.shift);
    clock.follow(following.stepMs); // not further: the clock may have been set again meanwhile
    following = undefined;
    found = { isRight: true, ignoredMs: 0 };
  }

  return {
    /** Looks whether the clock has been set. Rejects if the database does not store the shift. */
    check: oneAtATime(check),
    /** Whether the last check found `clock` right. If not, nothing may be claimed or sent. */
    isRight: () => lastCount !== undefined && found.isRight && !isSet(),
  };
}
