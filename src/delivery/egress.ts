import { createServer } from "node:net";
import { type Address, formatAddress } from "../base/address.ts";
import { findAgentClass, UNSUPPORTED } from "./agent_pool.ts";
import { findCode } from "./failure.ts";
import { createGuard, type EgressRequest, type Guard, type GuardOptions } from "./guard.ts";
import type { NameLookup } from "./name_lookup.ts";

/** Options of createEgress(). */
export interface EgressOptions extends GuardOptions {
  /** The global `fetch`; only the self-test calls it. */
  readonly request: (url: string, init: RequestInit) => Promise<Response>;
}

/** The result of the self-test. */
export type SelfTest = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The address guard of everything that leaves this process by `fetch`. */
export interface Egress extends Guard {
  /** Whether this Node's fetch obeys the guard, tried on a loopback listener (up to 10 s). */
  selfTest(): Promise<SelfTest>;
}

const SELF_TEST_TIMEOUT_MS = 1_500;
const SELF_TEST_BODY = '"gatepost"';

/** Makes the guard and its self-test; neither loads fetch before it is used. */
export function createEgress({ request, ...options }: EgressOptions): Egress {
  return {
    ...createGuard(options),
    selfTest: () =>
      testGuard(request).catch((error: unknown) => ({
        ok: false,
        reason: `loopback was not reached: ${findCode(error) ?? String(error)}`,
      })),
  };
}

/** Tries a guard that allows loopback, and one that does not, on a listener of its own. */
async function testGuard(request: EgressOptions["request"]): Promise<SelfTest> {
  if (findAgentClass() === undefined) return { ok: false, reason: UNSUPPORTED };
  const loopback: Address = { family: 4, value: 0x7f00_0001n };
  const lookup: NameLookup = async () => [loopback];
  const open = createGuard({ allow: [{ network: loopback, prefixBits: 32 }], lookup });
  const shut = createGuard({ allow: [], lookup });
  const listener = await listen(formatAddress(loopback));
  const hosts = [listener.host, listener.host.replace(/.*:/, "self-test.invalid:")];
  try {
    for (const host of hosts) {
      const { status } = await request(`http://${host}/`, open.guarded(selfTestRequest()));
      if (status === 400) return { ok: false, reason: "the body was left behind" };
      if (status !== 204) return { ok: false, reason: `something else answered for ${host}` };
    }
    const reached = listener.connections();
    if (reached === 0) return { ok: false, reason: "the listener was passed by" };
    for (const url of hosts.flatMap((host) => [`http://${host}/`, `https://${host}/`])) {
      const init = shut.guarded(selfTestRequest());
      const code = await request(url, init).then(() => "answered", findCode);
      if (code !== "EGRESS_REFUSED") return { ok: false, reason: `${url} was not refused` };
    }
    if (listener.connections() > reached) return { ok: false, reason: "a refusal dialled" };
    return { ok: true };
  } finally {
    await Promise.all([open.close(), shut.close(), listener.close()]);
  }
}

function selfTestRequest(): EgressRequest {
  const signal = AbortSignal.timeout(SELF_TEST_TIMEOUT_MS);
  return { method: "POST", body: SELF_TEST_BODY, signal };
}

/** A listener that counts its connections and answers 204 to the self-test's own body, else 400. */
async function listen(address: string) {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => socket.destroy());
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const [head = "", body] = received.split("\r\n\r\n");
      const announced = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
      if (body === undefined || body.length < announced) return;
      const status = body === SELF_TEST_BODY ? "204 No Content" : "400 Bad Request";
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, address, resolve);
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the listener has no port");
  return {
    host: `${address}:${bound.port}`,
    connections: () => connections,
    close: async () => void server.close(),
  };
}
