import type { Server } from "node:http";
import { Server as Listener } from "node:net";

/** The time for requests that were cut off to end and be logged. */
const LAST_LINES_MS = 20;

/**
 * Stops listening, and awaits the requests in flight. Connections that are still open after the
 * grace are cut. Idle connections close after `idleMs`: another request may be on its way, and its
 * client would have to send it again.
 */
export async function closeServer(server: Server, graceMs: number, idleMs: number): Promise<void> {
  let isCut = false;
  using _grace = setTimeout(() => {
    isCut = true;
    server.closeAllConnections();
  }, graceMs);
  const quietMs = Math.min(idleMs, graceMs);
  await takeWaiting(server, quietMs);
  const closed = new Promise((resolve) => Listener.prototype.close.call(server, resolve));
  // What has come while this process was busy is read before.
  const closeIdle = () => void setImmediate(() => server.close());
  using _idle = setTimeout(closeIdle, quietMs);
  await closed;
  if (isCut) await new Promise((resolve) => setTimeout(resolve, LAST_LINES_MS));
}

/** Awaits that no connection waits to be accepted: Node takes one a turn; a close resets all. */
async function takeWaiting(server: Server, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  let quietTurns = 0;
  const onConnection = () => quietTurns = 0;
  server.on("connection", onConnection);
  while (quietTurns < 2 && performance.now() < untilMs) { // from turn to turn it looks for one
    quietTurns++;
    await new Promise(setImmediate);
  }
  server.off("connection", onConnection);
}
