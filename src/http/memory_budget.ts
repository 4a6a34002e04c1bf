/** Memory that clients may make the server hold. */
export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** What one request has reserved of the budget. */
export type Reservation = ReturnType<MemoryBudget["reserve"]>;

/**
 * Makes a budget. When it is used up, the oldest reservation is evicted first: an honest client
 * needs its memory for a moment only, so the hoarder pays.
 */
export function createMemoryBudget(maxBytes: number) {
  const oldestFirst = new Set<() => void>();
  let held = 0;

  return {
    /** Begins a reservation. `onEvicted` is called after an eviction: others need the memory. */
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
        /** Protects the reservation from eviction. It still counts, and must not grow any more. */
        pin(): void {
          oldestFirst.delete(evict);
        },
        /** Adds bytes. Past the limit it evicts the oldest reservations that are not pinned. */
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
