import { createServer } from "node:net";
import type { LookupFunction } from "node:net";
import { type Address, formatAddress } from "../base/address.ts";
import type { Cidr } from "../base/cidr.ts";
import { findCode } from "./failure.ts";
import { createNameLookup, type NameLookup } from "./name_lookup.ts";
import { checkReachable, EgressError, isReachable, refusal } from "./reachable.ts";
import { type ExchangeHandler, trySecond } from "./second_try.ts";

/** Options of createEgress(). */
export interface EgressOptions {
  /** Blocks that may be reached although they are not public. */
  readonly allow: readonly Cidr[];
  /** The global `fetch`; only the self-test calls it. */
  readonly request: (url: string, init: RequestInit) => Promise<Response>;
  /** How a host name becomes addresses; createNameLookup() if not given. */
  readonly lookup?: NameLookup;
  /** Sockets per origin; 64 if not given. Fewer than the attempts in flight make attempts queue. */
  readonly connectionsPerOrigin?: number;
  /** For name lookup, TCP and TLS together; 5 s if not given. */
  readonly connectTimeoutMs?: number;
  /** Longest silence before the headers and within the body; 10 s if not given. */
  readonly silenceTimeoutMs?: number;
  /** A clock that never steps back; performance.now() if not given. */
  readonly nowMs?: () => number;
}

/** What is sent through the guard. */
export interface EgressRequest extends Omit<RequestInit, "headers" | "body"> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What the self-test found. */
export type SelfTest = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The address guard of everything that leaves this process by `fetch`. */
export interface Egress {
  /** The same request, bound to the guard: `fetch(url, egress.guarded(init))`. */
  guarded(request: EgressRequest): RequestInit;
  /** Whether this Node's fetch obeys the guard, tried on a loopback listener (up to 10 s). */
  selfTest(): Promise<SelfTest>;
  /** Ends idle connections and what is still in flight. */
  close(): Promise<void>;
}

/** What this module uses of the dispatchers of undici, the HTTP client inside Node's fetch. */
interface Dispatcher {
  dispatch(
    options: { readonly origin: string | URL; readonly body: unknown },
    handler: ExchangeHandler,
  ): boolean;
  /** A connection has been made; what waited for it starts in the same turn. */
  on(event: "connect", listener: () => void): unknown;
  /** Awaits what is in flight, then ends all connections. */
  close(): Promise<void>;
  destroy(): Promise<void>;
}

type AgentClass = new (options: object) => Dispatcher;

/** More answers than this of one name are not tried: a name is no list of hosts to scan. */
const MAX_ADDRESSES = 8;
/** Of so many it is remembered that they may be asked for; what a name stands for never is. */
const MAX_ORIGINS = 1_000;
const SELF_TEST_TIMEOUT_MS = 1_500;
/**
 * How long connections are kept and used again. An aborted exchange leaves one behind that nothing
 * would ever close (undici 8.10, nodejs/undici#5845): subscribers that hang would fill the process.
 */
const AGENT_LIFE_MS = 60_000;

/**
 * Opens the guard: only what isReachable() lets pass is dialled, over http and https alike.
 * Literals are vetted before a connection is looked for, names when one is made: the lookup's
 * answer is vetted and exactly what is left of it is dialled, so that an answer that changes
 * between check and use (DNS rebinding) gains nothing. A connection kept alive leads to the address
 * that was vetted when it was made.
 */
export function createEgress(options: EgressOptions): Egress {
  let known: AgentClass | undefined;
  const agentClass = () => known ??= findAgentClass();
  const guard = openGuard(options, agentClass);
  return {
    guarded: guard.guarded,
    selfTest: () =>
      testGuard(options.request, agentClass).catch((error: unknown) => ({
        ok: false,
        reason: `loopback was not reached: ${findCode(error) ?? String(error)}`,
      })),
    close: guard.close,
  };
}

type Guard = Omit<Egress, "selfTest">;

/** The class is asked for when the first request goes out: fetch is loaded with it. */
function openGuard(
  options: Omit<EgressOptions, "request">,
  agentClass: () => AgentClass | undefined,
): Guard {
  const { allow } = options;
  const nowMs = options.nowMs ?? (() => performance.now());
  /** One with `pipelining` 0 uses no connection twice. */
  const openAgent = (AgentClass: AgentClass, pipelining: 0 | 1) => new AgentClass({
    allowH2: false,
    connections: options.connectionsPerOrigin ?? 64,
    pipelining,
    headersTimeout: options.silenceTimeoutMs ?? 10_000,
    bodyTimeout: options.silenceTimeoutMs ?? 10_000,
    connect: {
      timeout: options.connectTimeoutMs ?? 5_000,
      lookup: vettedLookup(options.lookup ?? createNameLookup(), allow),
      // Node's own 250 ms give up on far hosts.
      autoSelectFamilyAttemptTimeout: 1_000,
    },
  });
  let agent: Dispatcher | undefined;
  let openedAtMs = 0;
  let isNewConnection = false;
  let isClosed = false;
  const retired = new Set<Dispatcher>();
  const retire = (old: Dispatcher) => {
    retired.add(old);
    // What a connection says at its end has been said to the exchanges that it carried.
    old.close().catch(() => {}).finally(() => retired.delete(old));
  };
  const noteConnection = () => {
    isNewConnection = true;
    queueMicrotask(() => {
      isNewConnection = false;
    });
  };
  const vetted = new Set<string>();
  const checkOrigin = (origin: string) => {
    if (vetted.has(origin)) return;
    checkReachable(new URL(origin), allow);
    if (vetted.size >= MAX_ORIGINS) vetted.clear();
    vetted.add(origin);
  };
  // Sockets do not look up literals, so those are vetted here, where every request passes.
  const dispatch: Dispatcher["dispatch"] = (request, handler) => {
    checkOrigin(String(request.origin));
    if (isClosed) throw closed();
    const AgentClass = agentClass();
    if (AgentClass === undefined) throw unsupported();
    if (agent === undefined || nowMs() - openedAtMs > AGENT_LIFE_MS) {
      if (agent) retire(agent);
      agent = openAgent(AgentClass, 1);
      agent.on("connect", noteConnection);
      openedAtMs = nowMs();
    }
    return agent.dispatch(request, trySecond(handler, () => isNewConnection, () => {
      if (isClosed) return false;
      const once = openAgent(AgentClass, 0);
      once.dispatch(request, handler);
      retire(once);
      return true;
    }));
  };

  return {
    // The body goes past fetch, which would make three streams of it: half of an exchange's cost.
    guarded({ body, headers, ...init }) {
      const dispatcher: Pick<Dispatcher, "dispatch"> = {
        dispatch: (request, handler) => dispatch({ ...request, body }, handler),
      };
      const length = String(Buffer.byteLength(body));
      return Object.assign(init, { headers: { ...headers, "Content-Length": length }, dispatcher });
    },
    async close() {
      isClosed = true;
      await Promise.all([agent, ...retired].map((each) => each?.destroy()));
    },
  };
}

/** A lookup for sockets: the reachable ones of a name's addresses, or EgressError for none. */
function vettedLookup(lookup: NameLookup, allow: readonly Cidr[]): LookupFunction {
  return (hostname, { all }, callback) => {
    const vet = async () => {
      const reachable = (await lookup(hostname))
        .filter((address) => isReachable(address, allow))
        .slice(0, MAX_ADDRESSES);
      if (reachable[0] === undefined) throw refusal(hostname);
      return { first: reachable[0], reachable };
    };
    vet().then(
      ({ first, reachable }) => {
        // Sockets that try several addresses ask for all of them, others for one.
        if (all === true) callback(null, reachable.map(toDial));
        else callback(null, formatAddress(first), first.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

function toDial(address: Address): { address: string; family: number } {
  return { address: formatAddress(address), family: address.family };
}

/** As undici says it of an agent. */
function closed(): Error {
  return Object.assign(new Error("the guard is closed"), { code: "UND_ERR_CLOSED" });
}

function unsupported(): EgressError {
  return new EgressError("EGRESS_UNSUPPORTED", "this Node's fetch offers no Agent to guard");
}

/**
 * The Agent class of the undici inside Node, which is exported nowhere: the global dispatcher is
 * one, under a registered symbol, once a global of fetch has been touched. Undefined where another
 * kind has been set (a proxy by NODE_USE_ENV_PROXY, a mock): it would dial past the guard.
 */
function findAgentClass(): AgentClass | undefined {
  void globalThis.Response;
  for (const version of [2, 1]) {
    const key = Symbol.for(`undici.globalDispatcher.${version}`);
    const dispatcher: unknown = Reflect.get(globalThis, key);
    if (typeof dispatcher !== "object" || dispatcher === null) continue;
    if (isAgentClass(dispatcher.constructor)) return dispatcher.constructor;
  }
  return undefined;
}

function isAgentClass(value: unknown): value is AgentClass {
  return typeof value === "function" && value.name === "Agent";
}

/** Tries a guard that allows loopback and one that does not on a listener of its own. */
async function testGuard(
  request: EgressOptions["request"],
  agentClass: () => AgentClass | undefined,
): Promise<SelfTest> {
  if (agentClass() === undefined) return { ok: false, reason: unsupported().message };
  const loopback: Address = { family: 4, value: 0x7f00_0001n };
  const lookup: NameLookup = async () => [loopback];
  const open = openGuard({ allow: [{ network: loopback, prefixBits: 32 }], lookup }, agentClass);
  const shut = openGuard({ allow: [], lookup }, agentClass);
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

const SELF_TEST_BODY = '"gatepost"';

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
