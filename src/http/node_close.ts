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
  await acceptWaiting(server, quietMs);
  const closed = new Promise((resolve) => Listener.prototype.close.call(server, resolve));
  // In a later turn, so that requests are read first that came while this process was busy.
  const closeIdle = () => void setImmediate(() => server.close());
  using _idle = setTimeout(closeIdle, quietMs);
  await closed;
  if (isCut) await new Promise((resolve) => setTimeout(resolve, LAST_LINES_MS));
}

/** Accepts waiting connections, which a close would reset: Node accepts one in each turn. */
async function acceptWaiting(server: Server, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  let quietTurns = 0;
  const onConnection = () => quietTurns = 0;
  server.on("connection", onConnection);
  while (quietTurns < 2 && performance.now() < untilMs) {
    quietTurns++;
    await new Promise(setImmediate);
  }
  server.off("connection", onConnection);
}
