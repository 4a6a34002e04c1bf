/** What one request has reserved of the budget. */
export interface Reservation {
  /** Counts so many bytes more; where they are too many, the oldest that may be evicted is. */
  add(bytes: number): void;
  /** From now on it is not evicted; it still counts. */
  pin(): void;
  /** May be called twice. */
  release(): void;
}

/** Memory that clients may make the server hold. */
export interface MemoryBudget {
  /** Begins to reserve; `onEvicted` is called, after its release, when others need the memory. */
  reserve(onEvicted: () => void): Reservation;
  /** Bytes that are held now. */
  heldBytes(): number;
}

/**
 * Makes a budget. When it is used up, what has been held longest is evicted first: an honest
 * client needs its part for a moment only, so it is the hoarder that pays.
 */
export function createMemoryBudget(maxBytes: number): MemoryBudget {
  const oldestFirst = new Set<() => void>();
  let held = 0;

  return {
    heldBytes: () => held,
    reserve(onEvicted) {
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
        release,
        pin: () => void oldestFirst.delete(evict),
        add(bytes) {
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
