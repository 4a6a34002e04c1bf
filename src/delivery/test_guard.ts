import type { Log } from "../base/log.ts";
import type { Egress, SelfTest } from "../outbound/egress.ts";
import { classifyCode } from "../outbound/failure.ts";
import { isShortage } from "../outbound/shortage.ts";

const PAUSE_MS = 5_000;

/**
 * Returns the result of the address guard's self-test. Repeats the test while the process lacks a
 * resource for it, or time, because it is stopped (a snapshot, a debugger) or starved.
 */
export async function testGuard(
  { selfTest }: Pick<Egress, "selfTest">,
  log: Pick<Log, "warn">,
  sleep: (ms: number) => Promise<unknown>,
): Promise<SelfTest> {
  for (;;) {
    const test = await selfTest();
    if (test.ok) return test;
    if (!isShortage(test.code) && classifyCode(test.code) !== "timeout") return test;
    log.warn("callbacks wait for what this process lacks", { code: test.code });
    await sleep(PAUSE_MS);
  }
}
