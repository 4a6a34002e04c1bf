import { createServer, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listen } from "./listen.ts";

/** Handles a request to a proxy; if it returns false, the request is forwarded. */
export type HandleProxied = (
  path: string,
  response: ServerResponse,
  /** Forwards the request; the response goes to the caller alone. */
  pass: () => Promise<Response>,
) => boolean | Promise<boolean>;

/** Starts a proxy of the node at `url`; it forwards what `handle` does not respond to. */
export async function startRqliteProxy(
  t: { after(end: () => void): void },
  url: string,
  handle: HandleProxied,
) {
  const server = createServer(async (request, response) => {
    const { url: path = "", method = "" } = request;
    const body = method === "GET" ? null : new Uint8Array(await buffer(request));
    const headers = { "Content-Type": request.headers["content-type"] ?? "" };
    const pass = () => fetch(`${url}${path}`, { method, headers, body });
    if (await handle(path, response, pass)) return;
    const passed = await pass();
    response.writeHead(passed.status, {
      "X-Rqlite-Version": passed.headers.get("x-rqlite-version") ?? "",
    });
    response.end(await passed.bytes());
  });
  return { host: await listen(t, server), disconnect: () => server.closeAllConnections() };
}
