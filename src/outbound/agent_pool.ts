import type { LookupFunction } from "node:net";
import { EgressError } from "./reachable.ts";
import { type ExchangeHandler, trySecond } from "./second_try.ts";

export interface AgentOptions {
  /** Sockets per origin. Fewer than the attempts in flight make attempts queue. */
  readonly connectionsPerOrigin: number;
  /**
   * For name lookup, TCP and TLS together, and for each silence after that. The pool ends an
   * exchange a second later. Callers give up by a signal of their own.
   */
  readonly timeoutMs: number;
}

interface ExchangeRequest {
  readonly origin: string | URL;
  readonly path: string;
  readonly body: unknown;
}

/** What this module uses of the dispatchers of undici, the HTTP client inside Node's fetch. */
interface Dispatcher {
  dispatch(request: ExchangeRequest, handler: ExchangeHandler): boolean;
  /** A connection has been made. Requests that waited for it start before any other event. */
  on(event: "connect", listener: () => void): unknown;
  /** Awaits the exchanges in flight, then ends all connections. */
  close(): Promise<void>;
  destroy(): Promise<void>;
}

type AgentClass = new (options: object) => Dispatcher;

interface KeptAgent {
  readonly agent: Dispatcher;
  readonly openedAtMs: number;
  /** Whether an exchange that starts now uses a connection that has just been made. */
  isNewConnection: boolean;
  /** How many exchanges are in flight. */
  exchanges: number;
}

/** Why nothing can be sent where findAgentClass() finds no class. */
export const UNSUPPORTED = "this Node's fetch offers no Agent to guard";

/**
 * How long connections are kept for reuse. An aborted exchange leaves one behind that nothing would
 * ever close (undici 8.10, nodejs/undici#5845): subscribers that hang would fill the process.
 */
const AGENT_LIFE_MS = 60_000;

/** The life of an idle connection, whatever `Keep-Alive` says: many hosts use up descriptors. */
const IDLE_MS = 4_000;

/**
 * undici counts time in steps of half a second, and a step that has nearly passed counts as a
 * whole. Without slack undici would end exchanges that are still in time.
 */
const SLACK_MS = 1_000;

/**
 * Makes a dispatcher whose connections are kept for a while and find addresses by `lookup`. Its
 * `close` aborts the exchanges in flight. It loads fetch with the first request.
 */
export function createAgentPool(
  options: AgentOptions,
  lookup: LookupFunction,
): Pick<Dispatcher, "dispatch" | "close"> {
  const { connectionsPerOrigin, timeoutMs } = options;
  const agents = new Set<KeptAgent>();
  let AgentClass: AgentClass | undefined;
  let current: KeptAgent | undefined;
  let isClosed = false;

  /** With `pipelining` 0 no connection is used twice. */
  function open(pipelining: 0 | 1): KeptAgent {
    const patienceMs = timeoutMs + SLACK_MS;
    AgentClass ??= findAgentClass();
    if (AgentClass === undefined) throw new EgressError("EGRESS_UNSUPPORTED", UNSUPPORTED);
    const agent = new AgentClass({
      allowH2: false,
      connections: connectionsPerOrigin,
      pipelining,
      keepAliveMaxTimeout: IDLE_MS,
      headersTimeout: patienceMs,
      bodyTimeout: patienceMs,
      connect: {
        timeout: patienceMs,
        lookup,
        autoSelectFamily: true,
        // Node's default of 250 ms gives up on far hosts.
        autoSelectFamilyAttemptTimeout: 1_000,
      },
    });
    const opened = { agent, openedAtMs: performance.now(), isNewConnection: false, exchanges: 0 };
    agents.add(opened);
    agent.on("connect", () => {
      opened.isNewConnection = true;
      queueMicrotask(() => {
        opened.isNewConnection = false;
      });
    });
    return opened;
  }

  function exchange(used: KeptAgent, request: ExchangeRequest, handler: ExchangeHandler): boolean {
    used.exchanges++;
    return used.agent.dispatch(request, watchEnd(handler, () => {
      used.exchanges--;
      closeIdle(used);
    }));
  }

  /** Closes an agent only once it is idle: undici loses track of a closing agent's connections. */
  function closeIdle(kept: KeptAgent): void {
    if (kept === current || kept.exchanges > 0 || !agents.delete(kept)) return;
    // An error of a closing connection has already reached the exchanges of that connection.
    kept.agent.close().catch(() => {});
  }

  return {
    dispatch(request, handler) {
      // The error that a closed agent of undici throws.
      if (isClosed) throw Object.assign(new Error("closed"), { code: "UND_ERR_CLOSED" });
      const former = current;
      if (former && performance.now() - former.openedAtMs > AGENT_LIFE_MS) {
        current = undefined;
        closeIdle(former);
      }
      const used = current ??= open(1);
      return exchange(used, request, trySecond(handler, () => used.isNewConnection, () => {
        if (!isClosed) exchange(open(0), request, handler);
        return !isClosed;
      }));
    },
    async close() {
      isClosed = true;
      await Promise.all([...agents].map(({ agent }) => agent.destroy()));
    },
  };
}

/** Calls `onEnd` once when an exchange has ended. The handler is changed, as by trySecond(). */
function watchEnd(handler: ExchangeHandler, onEnd: () => void): ExchangeHandler {
  const { onResponseEnd, onResponseError } = handler;
  let hasEnded = false; // the handler may be used again, for a second exchange
  const end = () => {
    if (!hasEnded) onEnd();
    hasEnded = true;
  };
  return Object.assign(handler, {
    onResponseEnd(controller, trailers) {
      end();
      onResponseEnd.call(handler, controller, trailers);
    },
    onResponseError(controller, error) {
      end();
      onResponseError.call(handler, controller, error);
    },
  } satisfies Partial<ExchangeHandler>);
}

/**
 * Returns the Agent class of the undici inside Node, which is not exported. The global dispatcher,
 * under a registered symbol, is an Agent once a global of fetch has been touched. Undefined where
 * another kind is set (a proxy by NODE_USE_ENV_PROXY, a mock): it would connect past the guard.
 */
export function findAgentClass(): AgentClass | undefined {
  void globalThis.Response;
  const dispatcher: { readonly constructor?: AgentClass } | undefined =
    Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.2"));
  return dispatcher?.constructor?.name === "Agent" ? dispatcher.constructor : undefined;
}
