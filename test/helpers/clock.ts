import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createDataFolder } from "./process.ts";

/** Longer than the interval at which a server reads the file. */
const LOOK_MS = 200;

/** The wall clock of servers that are started with its `env`. */
export type Clock = Awaited<ReturnType<typeof createClock>>;

/** Makes a clock that is right at first. */
export async function createClock() {
  const folder = await createDataFolder();
  const file = join(folder, "clock");
  const preload = new URL("./set_clock.ts", import.meta.url);
  let currentMs = 0;
  const clock = {
    env: { NODE_OPTIONS: `--import ${preload}`, TEST_CLOCK: file },
    /** Sets the clock ahead of the true time, and waits until the servers use it. */
    async set(aheadMs: number, waitMs = LOOK_MS): Promise<void> {
      if (aheadMs === currentMs) return;
      currentMs = aheadMs;
      await writeFile(file, String(aheadMs));
      await sleep(waitMs);
    },
    remove: () => rm(folder, { recursive: true }),
  };
  await writeFile(file, String(currentMs));
  return clock;
}
