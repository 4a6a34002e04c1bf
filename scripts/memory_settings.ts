/**
 * What Node is started with, by `npm start` and in README's unit too. V8 would rather have memory
 * than collect what callbacks leave behind, and the first two keep a full delivery below 200 MB. The
 * third keeps it from taking what a busy moment leaves behind for long-lived ever after: an exchange
 * would then be allocated among what is seldom collected, and cost a third more.
 */
export const MEMORY_FLAGS = [
  "--max-old-space-size=1024",
  "--max-semi-space-size=12",
  "--no-allocation-site-pretenuring",
] as const;

/**
 * The environment beside them. glibc would keep the 19 MiB of a password's hash for the next one, in
 * each thread that has made one; the blocks that are larger than this go back to the system.
 */
export const MEMORY_ENV = { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=4194304" } as const;
