import { performance } from "node:perf_hooks";

/** By then a thread that starts has done so. */
const SETTLED_MS = 1_000;
/** The share of that time in which a thread that has started may have worked. */
const MAX_WORKED = 0.25;

/**
 * Gives back, once and as soon as it is quiet, the memory that only the start of this thread has
 * needed. V8 would keep it until as much is in use again, which in a quiet service may be never. It
 * stops the thread for some 10 ms, and in the middle of its work it would cost more for good. Not
 * for the thread that serves requests: of that it would be 8 MiB, but what V8 makes of its code
 * afterwards takes 5 % longer for a GET.
 */
export function giveBackSoon(): void {
  const before = performance.eventLoopUtilization();
  setTimeout(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization > MAX_WORKED) return giveBackSoon();
    // Loaded now, to be no part of the start.
    const { setFlagsFromString } = process.getBuiltinModule("node:v8");
    setFlagsFromString("--expose-gc"); // Node has no other way to ask V8 for it
    const collect: NodeJS.GCFunction | undefined =
      process.getBuiltinModule("node:vm").runInNewContext("globalThis.gc");
    setFlagsFromString("--no-expose-gc"); // of all threads: another may find it so
    // Of all that V8 offers the one that moves what is left together.
    collect?.({ type: "major", flavor: "last-resort", execution: "sync" });
  }, SETTLED_MS).unref();
}
