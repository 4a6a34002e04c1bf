import assert from "node:assert/strict";
import { once } from "node:events";
import { Server as HttpServer } from "node:http";
import type { Server } from "node:net";

/** Has the server listen on a free port of the loopback; returns its host, with the port. */
export async function listenOnLoopback(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `127.0.0.1:${address.port}`;
}

/** The same until the test ends. */
export function listen(t: { after(end: () => void): void }, server: Server): Promise<string> {
  t.after(() => {
    server.close();
    if (server instanceof HttpServer) server.closeAllConnections();
  });
  return listenOnLoopback(server);
}
