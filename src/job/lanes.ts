/** What may be in flight at once. */
export interface LaneLimits {
  /** In all. */
  readonly total: number;
  /** Of one subscription. */
  readonly perSubscription: number;
}

interface Lane<Item> {
  readonly waiting: Item[];
  inFlight: number;
  /** Opened or taken, and not settled yet. */
  unsettled: number;
  isFailing: boolean;
}

/**
 * The work of one process, a lane a subscription: decides what may be sent now. The limits are exact:
 * a subscription whose last attempt failed has one slot until a success, and all such together have
 * at most half of the slots, so the dead never crowd out the living.
 */
export interface Lanes<Item> {
  /** Opens a subscription's lane, or keeps it open: until it is settled it remembers how it fares. */
  open(subscription: number, isFailing: boolean): void;
  /** Puts work into an open lane. */
  add(subscription: number, items: readonly Item[]): void;
  /** The next item that may be sent, lane after lane in turn; it is in flight from then on. */
  take(): { readonly subscription: number; readonly item: Item } | undefined;
  /**
   * An item is no longer in flight; `ok` is undefined where it was not sent after all. After
   * a failure what still waits in its lane is handed back, since it will not have its turn for long.
   */
  finish(subscription: number, ok: boolean | undefined): readonly Item[];
  /** Ends one `open`, or one `take` once what came of it is stored. */
  settle(subscription: number): void;
  /** How many more items a subscription's lane should hold, so that it never runs dry. */
  room(subscription: number, isFailing: boolean): number;
  /** How many more items of lanes that fail should be held: the others need room to wait in too. */
  roomForFailing(): number;
  /** The subscriptions that need nothing more now. */
  full(): number[];
  /** Takes back all that waits. */
  drain(): readonly Item[];
  inFlight(): number;
  waiting(): number;
}

/** Makes the lanes of one distributor. */
export function createLanes<Item>({ total, perSubscription }: LaneLimits): Lanes<Item> {
  const lanes = new Map<number, Lane<Item>>(); // in the order of their turns
  const failingLimit = Math.max(1, Math.floor(total / 2));
  let inFlight = 0;
  let failingInFlight = 0;
  let failingWaiting = 0;
  let waiting = 0;

  const capOf = (isFailing: boolean) => isFailing ? 1 : Math.min(perSubscription, total);

  function setFailing(lane: Lane<Item>, isFailing: boolean): void {
    if (lane.isFailing === isFailing) return;
    lane.isFailing = isFailing;
    failingInFlight += isFailing ? lane.inFlight : -lane.inFlight;
    failingWaiting += isFailing ? lane.waiting.length : -lane.waiting.length;
  }

  function maySend(lane: Lane<Item>): boolean {
    return lane.waiting.length > 0 && lane.inFlight < capOf(lane.isFailing) &&
      (!lane.isFailing || failingInFlight < failingLimit);
  }

  function room(subscription: number, isFailing: boolean): number {
    const lane = lanes.get(subscription);
    const held = lane ? lane.inFlight + lane.waiting.length : 0;
    const failing = lane?.isFailing ?? isFailing;
    // As much again waits as may be in flight, so that a claim in the database serves many.
    return Math.max(0, (failing ? 1 : 2 * capOf(false)) - held);
  }

  return {
    room,
    open(subscription, isFailing) {
      const lane = lanes.get(subscription);
      if (lane) lane.unsettled++;
      else lanes.set(subscription, { waiting: [], inFlight: 0, unsettled: 1, isFailing });
    },
    add(subscription, items) {
      const lane = lanes.get(subscription);
      if (!lane) throw new Error("Work is put into a lane that is not open");
      lane.waiting.push(...items);
      waiting += items.length;
      if (lane.isFailing) failingWaiting += items.length;
    },
    take() {
      if (inFlight >= total) return undefined;
      for (const [subscription, lane] of lanes) {
        if (!maySend(lane)) continue;
        const item = lane.waiting.shift();
        if (item === undefined) continue;
        lanes.delete(subscription); // to the end of the turns
        lanes.set(subscription, lane);
        lane.unsettled++;
        lane.inFlight++;
        inFlight++;
        waiting--;
        if (lane.isFailing) {
          failingInFlight++;
          failingWaiting--;
        }
        return { subscription, item };
      }
      return undefined;
    },
    finish(subscription, ok) {
      const lane = lanes.get(subscription);
      if (!lane) return [];
      lane.inFlight--;
      inFlight--;
      if (lane.isFailing) failingInFlight--;
      if (ok === undefined) return [];
      setFailing(lane, !ok);
      if (ok) return [];
      const handedBack = lane.waiting.splice(0);
      waiting -= handedBack.length;
      failingWaiting -= handedBack.length;
      return handedBack;
    },
    settle(subscription) {
      const lane = lanes.get(subscription);
      if (!lane) return;
      lane.unsettled--;
      if (lane.unsettled === 0 && lane.waiting.length === 0) lanes.delete(subscription);
    },
    roomForFailing: () => Math.max(0, 2 * failingLimit - failingInFlight - failingWaiting),
    full: () =>
      lanes.entries().filter(([subscription, lane]) =>
        room(subscription, lane.isFailing) < capOf(lane.isFailing)
      ).map(([subscription]) => subscription).toArray(),
    drain() {
      const items = lanes.values().flatMap((lane) => lane.waiting.splice(0)).toArray();
      waiting = 0;
      failingWaiting = 0;
      return items;
    },
    inFlight: () => inFlight,
    waiting: () => waiting,
  };
}
