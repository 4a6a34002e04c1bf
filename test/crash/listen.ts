import type { Server } from "node:net";

/** Makes a server listen on a free port of the loopback, and returns its address. */
export async function listenOnLoopback(server: Server): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address to listen on");
  return `http://127.0.0.1:${address.port}`;
}
