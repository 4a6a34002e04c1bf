import { createServer, type LookupFunction } from "node:net";
import { type Address, formatAddress } from "../base/address.ts";
import type { Cidr } from "../base/cidr.ts";
import { revision, version } from "../version.ts";
import { type AgentOptions, createAgentPool, findAgentClass, UNSUPPORTED } from "./agent_pool.ts";
import { type FetchHandler, followExchange } from "./exchange.ts";
import { classifyFailure, findCode } from "./failure.ts";
import { createNameLookup, type NameLookup } from "./name_lookup.ts";
import { isReachable, isReachableUrl, isReceiver, refusal } from "./reachable.ts";

export interface EgressOptions extends AgentOptions {
  /** Blocks that may be reached although they are not public. */
  readonly allow: readonly Cidr[];
  /** The URL above this service's own receivers, which may be reached too. */
  readonly receivers?: string | undefined;
  /** The global `fetch` if not given. */
  readonly request?: (url: string, init: RequestInit) => Promise<Response>;
  /** How a host name becomes addresses; by DNS if not given. */
  readonly lookup?: NameLookup;
}

export interface EgressRequest extends Omit<RequestInit, "headers" | "body"> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The parts of a response that are read. A `Response` cannot be made with a status past 599. */
export type EgressResponse = Pick<Response, "status" | "headers" | "body">;

export type SelfTest =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly code?: string | undefined };

/** The address guard of everything that leaves this process by `fetch`. */
export type Egress = ReturnType<typeof createEgress>;

/** The User-Agent of all requests, unless a request has its own. */
const USER_AGENT = `Gatepost/${version}@${revision}`;

/** More addresses than this of one name are not tried: a name is not a list of hosts to scan. */
const MAX_ADDRESSES = 8;
const MAX_LOOKUP_MS = 5_000;
/** The errors of undici's parser for a body that is cut short after `Connection: close`. */
const CUT_SHORT = ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "HTTPParserError"];
const SELF_TEST_TIMEOUT_MS = 1_500;
const SELF_TEST_BODY = '"gatepost"';

/**
 * Makes the guard, which connects only to addresses that isReachable() allows, over http and https
 * alike. A literal address is checked before a connection is looked for, a name when a connection
 * is made. The guard connects to exactly those addresses of a lookup that pass the check. So a
 * result that changes between check and use (DNS rebinding) gains nothing. A connection kept alive
 * leads to the address that was checked when it was made.
 */
export function createEgress(options: EgressOptions) {
  const lookupTimeoutMs = Math.min(options.timeoutMs, MAX_LOOKUP_MS);
  const { allow, lookup = createNameLookup({ timeoutMs: lookupTimeoutMs }) } = options;
  const { request = fetch, receivers } = options;
  const pool = createAgentPool(options, checkedLookup(lookup, allow));

  return {
    /** Sends as `fetch` does, without credentials and referrer. Redirects are not followed. */
    async send(url: string, { body, headers, ...init }: EgressRequest): Promise<EgressResponse> {
      const { follow, status, end } = followExchange();
      // The body bypasses fetch, which would make three streams of it: half of an exchange's cost.
      const dispatcher: Pick<typeof pool, "dispatch"> = {
        dispatch(exchange, handler: FetchHandler) {
          if (status() === 421) throw new Error("fetch would send it once more");
          const followed = follow(handler);
          // Sockets do not look up literals: those are checked here, where every request passes.
          const { origin, path } = exchange;
          const isOurs = isReceiver(`${origin}${path}`, receivers);
          if (!isOurs && !isReachableUrl(new URL(origin), allow)) throw refusal(String(origin));
          return pool.dispatch({ ...exchange, body: body ?? null }, followed);
        },
      };
      const own = {
        "User-Agent": USER_AGENT,
        ...body !== undefined && { "Content-Length": String(Buffer.byteLength(body)) },
      };
      const alone: RequestInit = {
        redirect: "manual", credentials: "omit", referrerPolicy: "no-referrer",
      };
      try {
        const response = await request(
          url,
          Object.assign(alone, init, { headers: { ...own, ...headers }, dispatcher }),
        );
        if (response.status === 205) end();
        return response;
      } catch (error) {
        end();
        const kept = status();
        if (kept === undefined || init.signal?.aborted) throw error;
        return { status: kept, headers: new Headers(), body: null };
      }
    },
    /** Ends idle connections and what is still in flight. */
    close: pool.close,
    /** Whether this Node's fetch obeys the guard, tried on a loopback listener (up to 10 s). */
    selfTest: () =>
      testGuard(request).catch((error: unknown): SelfTest => {
        const found = findCode(error);
        // The listener resets no connection. The system does, where it has no descriptor left.
        const code = classifyFailure(error) === "reset" ? "EMFILE" : found;
        return { ok: false, reason: `loopback was not reached: ${found ?? String(error)}`, code };
      }),
  };
}

/** Returns the start of a body: `bytes` bytes or a few more. The rest is not awaited. */
export async function readStart({ body }: EgressResponse, bytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body ?? []) { // leaving the loop cancels the rest
      chunks.push(chunk);
      length += chunk.length;
      if (length >= bytes) break;
    }
  } catch (error) {
    if (!CUT_SHORT.includes(findCode(error) ?? "")) throw error;
    throw Object.assign(new Error("cut short", { cause: error }), { code: "ECONNRESET" });
  }
  return Buffer.concat(chunks);
}

/**
 * Makes a lookup for sockets that try several addresses (autoSelectFamily). It finds the reachable
 * addresses of a name, and fails with EgressError if there are none.
 */
function checkedLookup(lookup: NameLookup, allow: readonly Cidr[]): LookupFunction {
  const findReachable = async (hostname: string) => {
    const addresses = (await lookup(hostname))
      .filter((address) => isReachable(address, allow)).slice(0, MAX_ADDRESSES)
      .map((address) => ({ address: formatAddress(address), family: address.family }));
    if (addresses.length === 0) throw refusal(hostname);
    return addresses;
  };
  return (hostname, _options, callback) => {
    findReachable(hostname).then(
      (addresses) => callback(null, addresses),
      (error: Error) => callback(error, []),
    );
  };
}

/** Tries a guard that allows loopback, and one that does not, on a listener of its own. */
async function testGuard(request: NonNullable<EgressOptions["request"]>): Promise<SelfTest> {
  if (findAgentClass() === undefined) return { ok: false, reason: UNSUPPORTED };
  const loopback: Address = { family: 4, value: 0x7f00_0001n };
  const lookup: NameLookup = async () => [loopback];
  const options = { connectionsPerOrigin: 1, timeoutMs: SELF_TEST_TIMEOUT_MS, lookup, request };
  const open = createEgress({ ...options, allow: [{ network: loopback, prefixBits: 32 }] });
  const shut = createEgress({ ...options, allow: [] });
  const listener = await listen(formatAddress(loopback));
  const call = (url: string, guard: typeof open) => {
    const signal = AbortSignal.timeout(SELF_TEST_TIMEOUT_MS);
    return guard.send(url, { method: "POST", body: SELF_TEST_BODY, signal });
  };
  const hosts = [listener.host, listener.host.replace(/.*:/, "self-test.invalid:")];
  try {
    for (const host of hosts) {
      const { status } = await call(`http://${host}/`, open);
      if (status === 400) return { ok: false, reason: "the body was not sent" };
      if (status !== 204) return { ok: false, reason: `something else answered for ${host}` };
    }
    const reached = listener.connections();
    if (reached === 0) return { ok: false, reason: "no request reached the listener" };
    for (const url of hosts.flatMap((host) => [`http://${host}/`, `https://${host}/`])) {
      const found = await call(url, shut).then(() => "answered", findCode);
      // A guard that has connected is broken, whatever ended the exchange.
      const code = listener.connections() > reached ? undefined : found;
      if (found !== "EGRESS_REFUSED") return { ok: false, reason: `${url} was not refused`, code };
      if (code === undefined) return { ok: false, reason: "a refused request opened a connection" };
    }
    return { ok: true };
  } finally {
    await Promise.all([open.close(), shut.close(), listener.close()]);
  }
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
