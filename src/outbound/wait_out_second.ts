import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 1_000;

/**
 * Waits until what began at `startedMs` (performance.now()) has taken whole seconds. What reached
 * nobody ends so: an exact duration would distinguish a name that leads to a private address from
 * one that does not exist.
 */
export async function waitOutSecond(startedMs: number): Promise<void> {
  await sleep(STEP_MS - (performance.now() - startedMs) % STEP_MS);
}
