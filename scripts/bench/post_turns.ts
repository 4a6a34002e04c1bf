/**
 * Preloaded into the server (`--import`): writes the longest turn of its event loop, in
 * milliseconds of CPU time, to the file in BENCH_TURNS when the server ends. SIGUSR2 resets it.
 * The wait for a core is not counted, so this is the part of a wait that the server itself causes.
 */
import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const LOOK_EVERY_MS = 1;

const file = process.env["BENCH_TURNS"];
if (isMainThread && file !== undefined) {
  let longestMs = 0;
  let last = process.threadCpuUsage();
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    longestMs = Math.max(longestMs, (user + system) / 1000);
    last = process.threadCpuUsage();
  }, LOOK_EVERY_MS).unref();
  process.on("SIGUSR2", () => longestMs = 0);
  process.once("exit", () => writeFileSync(file, String(longestMs)));
}
