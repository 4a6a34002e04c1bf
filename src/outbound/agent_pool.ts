import type { LookupFunction } from "node:net";
import { EgressError } from "./reachable.ts";
import { type ExchangeHandler, trySecond } from "./second_try.ts";

/** How connections are made. */
export interface AgentOptions {
  /** Sockets per origin. Fewer than the attempts in flight make attempts queue. */
  readonly connectionsPerOrigin: number;
  /** For name lookup, TCP and TLS together, and for each silence after that. */
  readonly timeoutMs: number;
}

/** What this module uses of the dispatchers of undici, the HTTP client inside Node's fetch. */
interface Dispatcher {
  dispatch(
    options: { readonly origin: string | URL; readonly path: string; readonly body: unknown },
    handler: ExchangeHandler,
  ): boolean;
  /** A connection has been made; what waited for it starts before any other event. */
  on(event: "connect", listener: () => void): unknown;
  /** Awaits what is in flight, then ends all connections. */
  close(): Promise<void>;
  destroy(): Promise<void>;
}

type AgentClass = new (options: object) => Dispatcher;

/** Why nothing can be sent without findAgentClass(). */
export const UNSUPPORTED = "this Node's fetch offers no Agent to guard";

/**
 * How long connections are kept and used again. An aborted exchange leaves one behind that nothing
 * would ever close (undici 8.10, nodejs/undici#5845): subscribers that hang would fill the process.
 */
const AGENT_LIFE_MS = 60_000;

/**
 * Makes what sends over connections that are kept for a while and find addresses by `lookup`; its
 * `close` aborts what is in flight. It loads fetch with the first request.
 */
export function createAgentPool(
  options: AgentOptions,
  lookup: LookupFunction,
): Pick<Dispatcher, "dispatch" | "close"> {
  const { connectionsPerOrigin, timeoutMs } = options;
  const retired = new Set<Dispatcher>();
  let AgentClass: AgentClass | undefined;
  let current: ReturnType<typeof openCurrent> | undefined;
  let isClosed = false;

  /** With `pipelining` 0 no connection is used twice. */
  function openAgent(pipelining: 0 | 1): Dispatcher {
    AgentClass ??= findAgentClass();
    if (AgentClass === undefined) throw new EgressError("EGRESS_UNSUPPORTED", UNSUPPORTED);
    return new AgentClass({
      allowH2: false,
      connections: connectionsPerOrigin,
      pipelining,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connect: {
        timeout: timeoutMs,
        lookup,
        autoSelectFamily: true,
        // Node's own 250 ms give up on far hosts.
        autoSelectFamilyAttemptTimeout: 1_000,
      },
    });
  }

  /** `isNewConnection`: what starts now does so on a connection that has just been made. */
  function openCurrent() {
    const opened = { agent: openAgent(1), openedAtMs: performance.now(), isNewConnection: false };
    opened.agent.on("connect", () => {
      opened.isNewConnection = true;
      queueMicrotask(() => {
        opened.isNewConnection = false;
      });
    });
    return opened;
  }

  function retire(agent: Dispatcher): void {
    retired.add(agent);
    // An error of a connection at its end has reached the exchanges that it carried.
    agent.close().catch(() => {}).finally(() => retired.delete(agent));
  }

  return {
    dispatch(request, handler) {
      // As undici reports it of an agent.
      if (isClosed) throw Object.assign(new Error("closed"), { code: "UND_ERR_CLOSED" });
      if (current && performance.now() - current.openedAtMs > AGENT_LIFE_MS) {
        retire(current.agent);
        current = undefined;
      }
      const used = current ??= openCurrent();
      return used.agent.dispatch(request, trySecond(handler, () => used.isNewConnection, () => {
        if (isClosed) return false;
        const once = openAgent(0);
        once.dispatch(request, handler);
        retire(once);
        return true;
      }));
    },
    async close() {
      isClosed = true;
      await Promise.all([current?.agent, ...retired].map((each) => each?.destroy()));
    },
  };
}

/**
 * The Agent class of the undici inside Node, which is exported nowhere: the global dispatcher is
 * one, under a registered symbol, once a global of fetch has been touched. Undefined where another
 * kind has been set (a proxy by NODE_USE_ENV_PROXY, a mock): it would connect past the guard.
 */
export function findAgentClass(): AgentClass | undefined {
  void globalThis.Response;
  const dispatcher: { readonly constructor?: AgentClass } | undefined =
    Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.2"));
  return dispatcher?.constructor?.name === "Agent" ? dispatcher.constructor : undefined;
}
