import type { Log } from "../base/log.ts";
import type { Egress, SelfTest } from "../outbound/egress.ts";
import { classifyCode } from "../outbound/failure.ts";
import { isShortage } from "../outbound/shortage.ts";

const PAUSE_MS = 5_000;

/**
 * What the guard's test of itself finds, once the process has what that takes: time, too, which one
 * that is stopped (a snapshot, a debugger) or starved has not.
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
