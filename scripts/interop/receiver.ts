import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { CallbackHeaders } from "./client.ts";

/** A callback as it arrived. */
export interface ReceivedCallback {
  readonly body: string;
  readonly headers: CallbackHeaders;
}

/** A subscriber's endpoint. */
export interface Receiver {
  readonly url: string;
  /** The next callback that has not been taken yet; rejects after ten seconds. */
  next(): Promise<ReceivedCallback>;
  close(): Promise<void>;
}

const WAIT_MS = 10_000;

/** Listens on a free loopback port and answers each callback with 204. */
export async function startReceiver(): Promise<Receiver> {
  const arrived: ReceivedCallback[] = [];
  const server = createServer((request, response) => {
    text(request).then((body) => {
      arrived.push({ body, headers: plainHeaders(request) });
      response.writeHead(204).end();
      server.emit("callback");
    }, () => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    async next() {
      const signal = AbortSignal.timeout(WAIT_MS);
      while (arrived.length === 0) await once(server, "callback", { signal });
      const [first] = arrived.splice(0, 1);
      if (first === undefined) throw new Error("no callback");
      return first;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function plainHeaders({ headers }: IncomingMessage): CallbackHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
