import { performance } from "node:perf_hooks";

/** The time in which a thread finishes its start. */
const SETTLED_MS = 1_000;
/** A thread that worked for a larger share of that time is not quiet. */
const MAX_UTILIZATION = 0.25;

/**
 * Frees, once and as soon as this thread is quiet, the memory that only its start needed. V8 would
 * keep it until as much is in use again, which in a quiet service may be never. The collection
 * stops the thread for some 10 ms; in the middle of its work it would cost more for good. Not for
 * the thread that serves requests: there it would free 8 MiB, but the code that V8 makes afterwards
 * takes 5 % longer for a GET.
 */
export function freeStartMemory(): void {
  const before = performance.eventLoopUtilization();
  setTimeout(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization > MAX_UTILIZATION) return freeStartMemory();
    // Loaded only now, so as not to slow the start.
    const { setFlagsFromString } = process.getBuiltinModule("node:v8");
    setFlagsFromString("--expose-gc"); // Node has no other way to ask V8 for it
    const collect: NodeJS.GCFunction | undefined =
      process.getBuiltinModule("node:vm").runInNewContext("globalThis.gc");
    setFlagsFromString("--no-expose-gc"); // the flag is of all threads: another could find it set
    // Of V8's collections only this one also compacts the heap.
    collect?.({ type: "major", flavor: "last-resort", execution: "sync" });
  }, SETTLED_MS).unref();
}
