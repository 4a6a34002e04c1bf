/** What can be made to read nothing for a while: a socket. */
export interface Pausable {
  isPaused(): boolean;
  pause(): unknown;
  resume(): unknown;
}

/** Counts the requests of one turn of the event loop. */
export interface TurnLimit {
  /** Counts one more request, and returns the number of the turn. */
  count(): number;
}

const MAX_IN_TURN = 2000;

/**
 * Makes the limit of what one turn of the event loop takes on. Two thousand requests fit into one
 * read of 64 KiB, and their parser cannot be stopped before it has made objects of all of them,
 * which are released only after the turn, when closed connections are cleared away. So once there
 * are that many, nothing more is read in this turn: memory stays bounded however many connections
 * send ahead at once, and timers and responses have their turn.
 */
export function createTurnLimit(open: () => Iterable<Pausable>): TurnLimit {
  let turn = 1;
  let requests = 0;
  let isTurning = false;

  function endTurn(): void {
    turn++;
    requests = 0;
    isTurning = false;
  }

  function pauseAll(): void {
    const paused = [...open()].filter((socket) => !socket.isPaused());
    for (const socket of paused) socket.pause();
    const resumeAll = () => paused.forEach((socket) => socket.resume());
    setImmediate(() => setImmediate(resumeAll)); // closed ones are cleared away between the two
  }

  return {
    count() {
      if (!isTurning) {
        isTurning = true;
        setImmediate(endTurn);
      }
      requests++;
      if (requests === MAX_IN_TURN) pauseAll();
      return turn;
    },
  };
}
