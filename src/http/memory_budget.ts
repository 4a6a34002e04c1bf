/** What one request holds of the budget. */
export interface Reservation {
  /** Counts so many bytes more; where they are too many, the oldest that may be given up is. */
  add(bytes: number): void;
  /** From now on it is not given up any more; it still counts. */
  keep(): void;
  /** Gives everything back; may be called twice. */
  release(): void;
}

/** Memory that clients may make the server hold. */
export interface MemoryBudget {
  /** Begins to hold; `giveUp` is called, after its release, when others need the room more. */
  hold(giveUp: () => void): Reservation;
  /** Bytes that are held now. */
  heldBytes(): number;
}

/**
 * Makes a budget. When it is used up, what has been held longest is given up first: an honest
 * client needs its part for a moment only, so it is the hoarder that pays.
 */
export function createMemoryBudget(maxBytes: number): MemoryBudget {
  const oldestFirst = new Set<() => void>();
  let held = 0;

  return {
    heldBytes: () => held,
    hold(giveUp) {
      let own = 0;
      const dismiss = (): void => {
        release();
        giveUp();
      };
      const release = (): void => {
        oldestFirst.delete(dismiss);
        held -= own;
        own = 0;
      };
      return {
        release,
        keep: () => void oldestFirst.delete(dismiss),
        add(bytes) {
          if (own === 0) oldestFirst.add(dismiss);
          own += bytes;
          held += bytes;
          for (const dismissOldest of oldestFirst) {
            if (held <= maxBytes) return;
            dismissOldest();
          }
        },
      };
    },
  };
}
