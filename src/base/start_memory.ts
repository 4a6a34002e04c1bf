/** By then a thread that starts has done so. */
const SETTLED_MS = 1_000;

/**
 * Gives back, soon and once, the memory that only the start of this thread has needed. V8 would
 * keep it until as much is in use again, which in a quiet service may be never. It stops the thread
 * for some 10 ms. Not for the thread that serves requests: of that it would be 8 MiB, but what V8
 * makes of its code afterwards takes 5 % longer for a GET.
 */
export function giveBackSoon(): void {
  setTimeout(async () => {
    const [{ setFlagsFromString }, { runInNewContext }] =
      await Promise.all([import("node:v8"), import("node:vm")]); // not while it starts
    setFlagsFromString("--expose-gc"); // Node has no other way to ask V8 for it
    const collect: NodeJS.GCFunction | undefined = runInNewContext("globalThis.gc");
    setFlagsFromString("--no-expose-gc"); // of all threads: another may find it so
    // Of all that V8 offers the one that moves what is left together.
    collect?.({ type: "major", flavor: "last-resort", execution: "sync" });
  }, SETTLED_MS).unref();
}
