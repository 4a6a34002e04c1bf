import type { Standing } from "../store/deliveries.ts";

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
  standing: Standing;
}

/**
 * The work of one process, a lane a subscription: decides what may be sent now. Its
 * limits are exact for this process, and others have their own: a subscription whose last attempt failed has one slot until a success, and all such together have
 * at most half of the slots. With those of which nothing is known yet they leave one subscription's
 * slots (somewhat less than half, where they are more) to those whose last attempt succeeded, so the dead
 * never crowd out the living, however many there are.
 */
export interface Lanes<Item> {
  /** Opens a subscription's lane, or keeps it open: until settled it remembers how it fares. */
  open(subscription: number, standing: Standing): void;
  /** Puts work into an open lane. */
  add(subscription: number, items: readonly Item[]): void;
  /** The next item that may be sent, lane after lane in turn; it is in flight from then on. */
  take(): { readonly subscription: number; readonly item: Item } | undefined;
  /**
   * An item is no longer in flight; `ok` is undefined where it was not sent after all. After a
   * failure what waits in its lane is handed back, since it will not have its turn for long.
   */
  finish(subscription: number, ok: boolean | undefined): readonly Item[];
  /** Ends one `open`, or one `take` once what came of it is stored. */
  settle(subscription: number): void;
  /** How many more items a subscription's lane should hold, so that it never runs dry. */
  room(subscription: number, standing: Standing): number;
  /** How many more items of lanes of a standing should be held: others need room to wait in too. */
  roomFor(standing: Standing): number;
  /** The subscriptions that need nothing more now. */
  full(): number[];
  /** Takes back all that waits. */
  drain(): readonly Item[];
  inFlight(): number;
  waiting(): number;
}

/**
 * How many turns are held, the one in flight included, so that one claim serves for several. More
 * of those that are well, since of what turns out to hang a turn takes as long as an attempt may:
 * the leases of what waits must not end before.
 */
const TURNS = { failing: 1, new: 2, proven: 4 };

function openGroup(limit: number, turns: number) {
  return { limit, held: turns * limit, inFlight: 0, waiting: 0 };
}

/** Makes the lanes of one distributor. */
export function createLanes<Item>({ total, perSubscription }: LaneLimits): Lanes<Item> {
  const lanes = new Map<number, Lane<Item>>(); // in the order of their turns
  const failing = openGroup(Math.max(1, Math.floor(total / 2)), TURNS.new);
  // Those that fail and those that are new. One more than those that fail may have at least, or
  // they would keep the new ones out.
  const unproven = openGroup(
    Math.min(total, Math.max(failing.limit + 1, total - perSubscription)),
    TURNS.new,
  );
  const all = openGroup(total, TURNS.proven);
  const groups = { failing: [failing, unproven, all], new: [unproven, all], proven: [all] };

  const capOf = (standing: Standing) => standing === "failing" ? 1 : Math.min(perSubscription, total);

  function count(standing: Standing, inFlight: number, waiting: number): void {
    for (const group of groups[standing]) {
      group.inFlight += inFlight;
      group.waiting += waiting;
    }
  }

  function setStanding(lane: Lane<Item>, standing: Standing): void {
    if (lane.standing === standing) return;
    count(lane.standing, -lane.inFlight, -lane.waiting.length);
    lane.standing = standing;
    count(standing, lane.inFlight, lane.waiting.length);
  }

  function maySend({ waiting, inFlight, standing }: Lane<Item>): boolean {
    return waiting.length > 0 && inFlight < capOf(standing) &&
      groups[standing].every((group) => group.inFlight < group.limit);
  }

  function room(subscription: number, claimed: Standing): number {
    const lane = lanes.get(subscription);
    const held = lane ? lane.inFlight + lane.waiting.length : 0;
    const standing = lane?.standing ?? claimed;
    return Math.max(0, TURNS[standing] * capOf(standing) - held);
  }

  return {
    room,
    open(subscription, standing) {
      const lane = lanes.get(subscription);
      if (lane) lane.unsettled++;
      else lanes.set(subscription, { waiting: [], inFlight: 0, unsettled: 1, standing });
    },
    add(subscription, items) {
      const lane = lanes.get(subscription);
      if (!lane) throw new Error("Work is put into a lane that is not open");
      lane.waiting.push(...items);
      count(lane.standing, 0, items.length);
    },
    take() {
      if (all.inFlight >= total) return undefined;
      for (const [subscription, lane] of lanes) {
        if (!maySend(lane)) continue;
        const item = lane.waiting.shift();
        if (item === undefined) continue;
        lanes.delete(subscription); // to the end of the turns
        lanes.set(subscription, lane);
        lane.unsettled++;
        lane.inFlight++;
        count(lane.standing, 1, -1);
        return { subscription, item };
      }
      return undefined;
    },
    finish(subscription, ok) {
      const lane = lanes.get(subscription);
      if (!lane) return [];
      lane.inFlight--;
      count(lane.standing, -1, 0);
      if (ok === undefined) return [];
      setStanding(lane, ok ? "proven" : "failing");
      if (ok) return [];
      const handedBack = lane.waiting.splice(0);
      count(lane.standing, 0, -handedBack.length);
      return handedBack;
    },
    settle(subscription) {
      const lane = lanes.get(subscription);
      if (!lane) return;
      lane.unsettled--;
      if (lane.unsettled === 0 && lane.waiting.length === 0) lanes.delete(subscription);
    },
    roomFor: (standing) =>
      Math.max(0, Math.min(...groups[standing].map(({ held, inFlight, waiting }) =>
        held - inFlight - waiting
      ))),
    full: () =>
      lanes.entries().filter(([subscription, lane]) =>
        room(subscription, lane.standing) < capOf(lane.standing)
      ).map(([subscription]) => subscription).toArray(),
    drain() {
      const items = lanes.values().flatMap((lane) => lane.waiting.splice(0)).toArray();
      for (const group of groups.failing) group.waiting = 0;
      return items;
    },
    inFlight: () => all.inFlight,
    waiting: () => all.waiting,
  };
}
