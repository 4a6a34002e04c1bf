import type { Socket } from "node:net";

/**
 * The costs of what is counted, in units of a body piece: about a microsecond. Fields are those of
 * a request's head. Bytes are those of values parsed from a body, and of responses that wait for
 * their clients.
 */
const COSTS = { piece: 1, request: 10, field: 2, byte: 1 / 256 } as const;

/** The cost of 2,000 requests with five fields. */
const MAX_IN_TURN = 40_000;
/** The cost assumed of a sender without input yet: small, but above that of nearly all others. */
const UNKNOWN = MAX_IN_TURN / 20;
const HALF_LIFE_MS = 10_000;
/** Turns without reading. In each, Node accepts one waiting connection and clears closed ones. */
const QUIET_TURNS = 50;

/** A connection whose requests and bodies are counted. */
export interface Sender {
  readonly socket: Socket;
  /** The cost of what the sender has sent of late. */
  cost: number;
  /** Whether reading from the sender is paused for now, and whether it resumes afterwards. */
  isPaused: boolean;
  resumesLater: boolean;
}

/**
 * Makes the limit of what one turn of the event loop handles. Past the limit, nothing more is read
 * for a moment. So memory stays bounded however many connections pipeline at once, and timers,
 * responses and new connections are not held up. Then the senders of least cost are read first:
 * nobody waits for endless requests, or for endless bodies in small chunks, of other senders.
 */
export function createTurnLimit(open: () => Iterable<Sender>) {
  let cost = 0;
  let agedAtMs = 0;
  let paused: Sender[] | undefined;

  function pause(sender: Sender): void {
    if (paused === undefined || sender.isPaused) return;
    sender.isPaused = true;
    sender.resumesLater = !sender.socket.isPaused();
    process.nextTick(() => sender.socket.pause()); // later: a pending resume would undo it
    paused.push(sender);
  }

  function holdAll(): void {
    if (paused === undefined) {
      paused = [];
      resumeAfter(QUIET_TURNS);
    }
    for (const sender of open()) pause(sender);
  }

  function resumeAfter(turns: number): void {
    if (turns > 0) {
      setImmediate(resumeAfter, turns - 1);
      return;
    }
    const nowMs = performance.now();
    const left = 0.5 ** ((nowMs - agedAtMs) / HALF_LIFE_MS);
    agedAtMs = nowMs;
    const senders = paused ?? [];
    paused = undefined;
    senders.reverse(); // of equal costs the newest goes first
    senders.sort((a, b) => (a.cost || UNKNOWN) - (b.cost || UNKNOWN));
    for (const sender of senders) {
      sender.cost *= left;
      sender.isPaused = false;
      if (sender.resumesLater) sender.socket.resume();
    }
  }

  return {
    /** Pauses a new sender while the others are paused. */
    pause,
    /** Counts work, without a sender where the connection is closing. */
    count(what: keyof typeof COSTS, sender?: Sender, times = 1): void {
      if (cost === 0) setImmediate(() => cost = 0);
      const before = cost;
      cost += times * COSTS[what];
      if (sender) sender.cost += times * COSTS[what];
      if (before < MAX_IN_TURN && cost >= MAX_IN_TURN) holdAll();
    },
  };
}
