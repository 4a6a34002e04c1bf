import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import { createNodeChoice, createWaitLimit } from "./rqlite_nodes.ts";

/** The address of an rqlite cluster. */
export interface RqliteAddress {
  /** Its nodes, such as `127.0.0.1:4001`. They name the leader, which need not be listed. */
  readonly nodes: readonly string[];
  readonly isTls: boolean;
  /** `user:password`. */
  readonly credentials: string | undefined;
}

/** Sends requests to the nodes of a cluster. */
export type RqliteClient = ReturnType<typeof createRqliteClient>;

/** The result of one statement: rows of a SELECT, or what a write changed. */
export interface RqliteResult {
  readonly error?: string;
  readonly columns?: readonly string[];
  readonly types?: readonly string[];
  readonly values?: readonly (readonly unknown[])[];
  /** Missing if it is 0. */
  readonly rows_affected?: number;
}

type Attempt =
  | { readonly kind: "results"; readonly results: readonly RqliteResult[] }
  | { readonly kind: "redirect"; readonly leader: string }
  /** Surely nothing has run if the node says so, or was never reached. */
  | { readonly kind: "failed"; readonly mayHaveRun: boolean; readonly reason: string };

/** How long a node may take for each mebibyte of a request, by default. */
const ATTEMPT_MS = 1_000;
const MEBIBYTE = 1024 * 1024;
const PAUSE_MS = 40;
/** With less time left nothing is sent: it might run, and its response would come too late. */
const LEAST_MS = 100;
const SHOWN_CHARACTERS = 200;

/** Describes a response that is not a result. Cuts it short: a proxy may send a long page. */
export function describeResponse(status: number | undefined, content: string): string {
  if (status === 401) return "refuses GATEPOST_DATABASE_CREDENTIALS";
  return `HTTP ${status} ${content.slice(0, SHOWN_CHARACTERS).trim()}`;
}

/** Parses a response's JSON; throws an error that describes the response if it is none. */
export function readResponse(status: number | undefined, content: string) {
  try {
    return JSON.parse(content);
  } catch (cause) {
    throw new Error(describeResponse(status, content), { cause });
  }
}

/** Makes a client. Its connections stay open until `close`; none keeps the process alive. */
export function createRqliteClient({ nodes, isTls, credentials }: RqliteAddress) {
  // Not by imports, which would load all of fetch, and TLS: see base/status_text.ts.
  const { Agent, request } = isTls ? process.getBuiltinModule("node:https")
    : process.getBuiltinModule("node:http");
  const agent = new Agent({ keepAlive: true });
  const headers = {
    "Content-Type": "application/json",
    ...credentials && { Authorization: `Basic ${Buffer.from(credentials).toString("base64")}` },
  };
  const choice = createNodeChoice(nodes);
  const waitLimit = createWaitLimit();
  /** Why each node gave no result, in requests since the last one that got a result. */
  let lastFailures: ReadonlyMap<string, string> = new Map();
  let isOpen = true;
  let aheadMs = 0;

  function start(node: string, method: string, path: string, timeoutMs: number): ClientRequest {
    const url = `${isTls ? "https" : "http"}://${node}${path}`;
    const outgoing = request(url, { method, agent, headers });
    outgoing.on("error", () => {}); // it may come when nobody awaits the response
    outgoing.once("socket", (socket: Socket) => {
      if (!outgoing.reusedSocket) socket.once("close", choice.disconnected);
    });
    const giveUp = () => {
      if (outgoing.destroyed) return;
      choice.silenced(node);
      outgoing.destroy(new Error("no response in time")); // always the same: it is logged once
    };
    // `setImmediate`: a response that arrived while this process stood still is read first.
    const limit = setTimeout(() => setImmediate(giveUp), timeoutMs);
    return outgoing.once("close", () => clearTimeout(limit));
  }

  /** Ends a long request if its node does not answer a small one in time. */
  function watch(node: string, outgoing: ClientRequest): void {
    if (outgoing.destroyed) return;
    start(node, "GET", "/readyz?noleader", ATTEMPT_MS).end()
      .once("error", (error) => outgoing.destroy(error))
      .once("response", (incoming: IncomingMessage) => {
        incoming.resume();
        setTimeout(watch, ATTEMPT_MS, node, outgoing).unref();
      });
  }

  async function attempt(
    node: string,
    path: string,
    body: string,
    count: number,
    timeoutMs: number,
  ): Promise<Attempt> {
    const outgoing = start(node, "POST", path, timeoutMs);
    if (timeoutMs > ATTEMPT_MS) watch(node, outgoing);
    let isSent = false;
    outgoing.once("socket", (socket: Socket) => {
      if (!socket.connecting) isSent = true;
      else socket.once(isTls ? "secureConnect" : "connect", () => isSent = true);
    });
    const fail = (mayHaveRun: boolean, why: string): Attempt =>
      ({ kind: "failed", mayHaveRun, reason: `${node}: ${why}` });
    try {
      const [incoming] = await once(outgoing.end(body), "response");
      const { statusCode: status = 0, headers: { location, date } }: IncomingMessage = incoming;
      const content = await text(incoming);
      aheadMs = Date.parse(`${date}`) - Date.now() || 0;
      if (status === 301 && location !== undefined) {
        return { kind: "redirect", leader: new URL(location).host };
      }
      // The node refuses the request, or credentials that another node may accept: nothing ran.
      const isRefusal = status < 500 || content.includes("leader not found");
      if (status !== 200) return fail(!isRefusal, describeResponse(status, content));
      const { results, error = "not a result of each statement" } = readResponse(status, content);
      // The results of a transaction end with the statement that failed.
      const isWhole = results?.length === count || results?.at(-1)?.error !== undefined;
      // An error outside the results: leadership was lost, and the write may still be stored.
      return isWhole ? { kind: "results", results } : fail(true, error);
    } catch (cause) {
      return fail(isSent, (cause as Error).message.trim()); // OpenSSL's end with \n
    }
  }

  /**
   * Sends the statements to the current leader and returns their results. Repeats failed attempts,
   * so a write must be idempotent. Throws UnavailableError at the deadline, or if no node has
   * answered any request for five seconds; OutcomeUnknownError if an attempt may have run.
   *
   * @param pathOf makes the path of each attempt
   * @param statements at least one, each in JSON
   * @param untilMs the deadline, by `performance.now()`
   * @param mebibyteMs how long one node may take for each mebibyte; then another is asked
   */
  async function ask(
    pathOf: () => string,
    statements: readonly string[],
    untilMs: number,
    mebibyteMs = ATTEMPT_MS,
  ): Promise<readonly RqliteResult[]> {
    const body = `[${statements.join(",")}]`;
    const attemptMs = Math.ceil(body.length / MEBIBYTE) * mebibyteMs;
    const startedMs = performance.now();
    let mayHaveRun = false;
    let redirects = 0;
    /** The last failures and this request's own; a result of another request resets the last. */
    const failures = new Map(lastFailures);
    for (;;) {
      const nowMs = performance.now();
      const leftMs = Math.min(untilMs, waitLimit.untilMs(startedMs)) - nowMs;
      if (leftMs < LEAST_MS || !isOpen) {
        const why = [...failures.values()].sort().join("; ") || "no node has answered in time";
        const message = `The database cannot be reached: ${why}`;
        throw mayHaveRun ? new OutcomeUnknownError(message) : new UnavailableError(message);
      }
      const node = choice.next();
      const found = await waitLimit.attempt((isProbe) => {
        const timeoutMs = Math.min(isProbe ? untilMs - nowMs : leftMs, attemptMs);
        return attempt(node, pathOf(), body, statements.length, timeoutMs);
      });
      if (found.kind === "results") {
        choice.answered(node);
        lastFailures = new Map();
        return found.results;
      }
      choice.failed(node);
      failures.delete(node);
      if (found.kind === "failed") {
        mayHaveRun ||= found.mayHaveRun;
        failures.set(node, found.reason);
      } else if (choice.follow(found.leader)) {
        if (redirects++ === 0) continue;
        // Nodes may name each other, or themselves.
        failures.set(node, `${node} names ${found.leader} as the leader`);
      }
      lastFailures = failures;
      await pause(PAUSE_MS);
    }
  }

  return {
    nodes,
    ask,
    /** Rises whenever the leader may have changed. */
    leaderChanges: choice.changes,
    /** How far the clock of the node that answered last is ahead of ours, to within a second. */
    aheadMs: () => aheadMs,
    /** Sends any request to one node; `timeoutMs` covers all of it. Throws the system's error. */
    async request(
      node: string,
      method: string,
      path: string,
      timeoutMs: number,
      body?: Readable,
    ): Promise<IncomingMessage> {
      const outgoing = start(node, method, path, timeoutMs);
      if (body) body.on("error", (error) => outgoing.destroy(error)).pipe(outgoing);
      else outgoing.end();
      // A node that loads a body may be too busy to answer `watch`.
      if (!body && timeoutMs > ATTEMPT_MS) watch(node, outgoing);
      const [incoming] = await once(outgoing, "response");
      return incoming;
    },
    /** Finds the node that leads now. Throws UnavailableError. */
    async findLeader(untilMs: number): Promise<string> {
      const asked = ask(() => "/db/query?level=weak&redirect", ['"SELECT 1"'], untilMs);
      await asked.catch(({ message }: Error) => {
        throw new UnavailableError(message); // a SELECT stores nothing, even if it ran
      });
      return choice.next();
    },
    close(): void {
      isOpen = false;
      agent.destroy();
    },
  };
}
