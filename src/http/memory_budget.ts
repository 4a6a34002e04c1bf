/** Memory that clients may make the server hold. */
export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** What one request has reserved of the budget. */
export type Reservation = ReturnType<MemoryBudget["reserve"]>;

/**
 * Makes a budget. When it is used up, what has been held longest is evicted first: an honest
 * client needs its part for a moment only, so it is the hoarder that pays.
 */
export function createMemoryBudget(maxBytes: number) {
  const oldestFirst = new Set<() => void>();
  let held = 0;

  return {
    /** Begins to reserve; `onEvicted` is called, after its release, when others need the memory. */
    reserve(onEvicted: () => void) {
      let own = 0;
      const evict = (): void => {
        release();
        onEvicted();
      };
      const release = (): void => {
        oldestFirst.delete(evict);
        held -= own;
        own = 0;
      };
      return {
        /** May be called twice. */
        release,
        /** From now on it is not evicted; it still counts, and adds no more. */
        pin(): void {
          oldestFirst.delete(evict);
        },
        /** Counts so many bytes more; past the limit the oldest that may be evicted is. */
        add(bytes: number): void {
          if (own === 0) oldestFirst.add(evict);
          own += bytes;
          held += bytes;
          for (const evictOldest of oldestFirst) {
            if (held <= maxBytes) return;
            evictOldest();
          }
        },
      };
    },
  };
}
