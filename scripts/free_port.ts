import { once } from "node:events";
import { createServer } from "node:net";

/** Finds a free port of the loopback, for a program that must know its port before it listens. */
export async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}
