import type { Socket } from "node:net";

const MAX_IN_TURN = 2000;

/**
 * Makes the limit of what one turn of the event loop takes on. Once there are that many requests,
 * nothing more is read in this turn: memory stays bounded however many connections send ahead at
 * once, and timers and responses are not held up. What it returns counts one more request.
 */
export function createTurnLimit(open: () => Iterable<Socket>): () => void {
  let requests = 0;

  return () => {
    if (requests === 0) setImmediate(() => requests = 0);
    if (++requests !== MAX_IN_TURN) return;
    const paused = [...open()].filter((socket) => !socket.isPaused());
    for (const socket of paused) socket.pause();
    const resumeAll = () => paused.forEach((socket) => socket.resume());
    setImmediate(() => setImmediate(resumeAll)); // closed ones are cleared away between the two
  };
}
