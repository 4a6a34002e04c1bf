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
  const closed = new Promise((resolve) => Listener.prototype.close.call(server, resolve));
  using _idle = setTimeout(() => server.close(), Math.min(idleMs, graceMs));
  await closed;
  if (isCut) await new Promise((resolve) => setTimeout(resolve, LAST_LINES_MS));
}
