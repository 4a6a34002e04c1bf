import type { Socket } from "node:net";

/**
 * What is counted, in the time that a piece of a body takes: a microsecond or so. Fields are those
 * of a request's head; bytes are those of values that are made of a body, and of responses that
 * wait for their clients.
 */
const COSTS = { piece: 1, request: 10, field: 2, byte: 1 / 256 } as const;

/** Of 2,000 requests with five fields. */
const MAX_IN_TURN = 40_000;
/** Of who has sent nothing yet: little, but more than of nearly all who are known. */
const UNKNOWN = MAX_IN_TURN / 20;
const HALF_LIFE_MS = 10_000;
/** In each, Node accepts one connection of those that wait, and clears closed ones away. */
const QUIET_TURNS = 50;

/** Whose requests and bodies are counted. */
export interface Sender {
  readonly socket: Socket;
  /** Of what it has sent of late. */
  cost: number;
  /** Nothing is read from it for now, and whether it will be then. */
  isHeld: boolean;
  isWanted: boolean;
}

/**
 * Makes the limit of what one turn of the event loop takes on. Once it is reached, nothing more is
 * read for a moment: memory stays bounded however many connections send ahead at once, and timers,
 * responses and new connections are not held up. Those that have sent least of late are read first
 * then: nobody waits for those whose requests, or whose bodies in small chunks, have no end.
 */
export function createTurnLimit(open: () => Iterable<Sender>) {
  let cost = 0;
  let agedAtMs = 0;
  let held: Sender[] | undefined;

  function hold(sender: Sender): void {
    if (held === undefined || sender.isHeld) return;
    sender.isHeld = true;
    sender.isWanted = !sender.socket.isPaused();
    process.nextTick(() => sender.socket.pause()); // one that is about to resume would do so
    held.push(sender);
  }

  function holdAll(): void {
    if (held === undefined) {
      held = [];
      resumeAfter(QUIET_TURNS);
    }
    for (const sender of open()) hold(sender);
  }

  function resumeAfter(turns: number): void {
    if (turns > 0) {
      setImmediate(resumeAfter, turns - 1);
      return;
    }
    const nowMs = performance.now();
    const left = 0.5 ** ((nowMs - agedAtMs) / HALF_LIFE_MS);
    agedAtMs = nowMs;
    const senders = held ?? [];
    held = undefined;
    senders.reverse(); // of equal ones the newest goes first
    senders.sort((a, b) => (a.cost || UNKNOWN) - (b.cost || UNKNOWN));
    for (const sender of senders) {
      sender.cost *= left;
      sender.isHeld = false;
      if (sender.isWanted) sender.socket.resume();
    }
  }

  return {
    /** One that has just been opened waits where others do. */
    hold,
    /** Counts one more; of no sender where that is closing. */
    count(what: keyof typeof COSTS, sender?: Sender, times = 1): void {
      if (cost === 0) setImmediate(() => cost = 0);
      const before = cost;
      cost += times * COSTS[what];
      if (sender) sender.cost += times * COSTS[what];
      if (before < MAX_IN_TURN && cost >= MAX_IN_TURN) holdAll();
    },
  };
}
