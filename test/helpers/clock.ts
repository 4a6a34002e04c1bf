import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createDataFolder } from "./process.ts";

/** Longer than until a server looks. */
const LOOK_MS = 200;

/** The clock on the wall of servers that are started with its `env`. */
export type Clock = Awaited<ReturnType<typeof createClock>>;

/** Makes a clock that is right at first. */
export async function createClock() {
  const folder = await createDataFolder();
  const file = join(folder, "clock");
  const preload = new URL("./set_clock.ts", import.meta.url);
  const clock = {
    env: { NODE_OPTIONS: `--import ${preload}`, TEST_CLOCK: file },
    /** Sets it so far ahead of the true one, and waits until servers go by it. */
    async set(aheadMs: number, waitMs = LOOK_MS): Promise<void> {
      await writeFile(file, String(aheadMs));
      await sleep(waitMs);
    },
    remove: () => rm(folder, { recursive: true }),
  };
  await clock.set(0, 0);
  return clock;
}
