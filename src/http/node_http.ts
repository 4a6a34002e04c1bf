import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Cidr } from "../base/cidr.ts";
import type { HttpResponse, HttpRequest } from "../base/http_message.ts";
import type { Log } from "../base/log.ts";
import { Problem } from "../base/problem.ts";
import { type Connection, createConnections } from "./connections.ts";
import { createMemoryBudget, type Reservation } from "./memory_budget.ts";
import { createIncomingBody } from "./node_body.ts";
import { refuseSocket, sendResponse } from "./node_response.ts";
import { NodeRequest } from "./node_request.ts";
import { createResponseStreams } from "./node_stream.ts";
import { findHeadError } from "./request_head.ts";
import { newRequestId } from "./request_id.ts";
import { problemResponse } from "./respond.ts";

// Not by an import, which would load all of fetch: see base/status_text.ts.
const { createServer } = process.getBuiltinModule("node:http");

/** What the HTTP server needs beside the handler. */
export interface NodeHttpOptions {
  /** Answers every request; it must not throw. */
  readonly handle: (request: HttpRequest) => Promise<HttpResponse>;
  readonly trustedProxies: readonly Cidr[];
  /** The largest body that any route takes. */
  readonly maxBodyBytes: number;
  readonly log: Log;
  /** Told of every refusal of what never became a request, for the metrics. */
  readonly onRefusal: (status: number) => void;
  /** Aborts when the server stops. */
  readonly stopping?: AbortSignal;
  readonly limits?: Partial<HttpLimits>;
}

/**
 * What clients, however hostile, can make the server hold: for each connection a head of 16 KiB, as
 * much of a body that nobody has asked for yet, and one read of 64 KiB; for all connections
 * together the bodies and the responses, which have bounds of their own. With the limits below that
 * is 5,000 × 96 KiB + 64 MiB + 64 MiB, about 600 MiB, and test/fuzz/hostile_clients.test.ts tries
 * it; turn_limit.ts sees to it that requests which are sent ahead do not come on top. What a hosted
 * endpoint keeps by itself comes on top.
 */
export interface HttpLimits {
  readonly maxConnections: number;
  /** Of one address that is not a trusted proxy (IPv6: its /64). */
  readonly maxConnectionsPerAddress: number;
  /** Requests that a client may send ahead on one connection. */
  readonly maxPipelined: number;
  /** Bytes of all request bodies that are coming in or being worked on. */
  readonly maxHeldBodyBytes: number;
  /** Bytes of all responses that clients have not taken yet. */
  readonly maxHeldResponseBytes: number;
  /** From the first byte of a request to the end of its head, and to its end. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long a client may take nothing of a response that waits for it. */
  readonly stallTimeoutMs: number;
}

/**
 * What holds unless `limits` says otherwise: generous for people on slow lines, and so short that
 * idle or dripping clients hold little.
 */
export const DEFAULT_LIMITS: HttpLimits = {
  maxConnections: 5_000,
  maxConnectionsPerAddress: 2_500,
  maxPipelined: 16,
  maxHeldBodyBytes: 64 * 1024 * 1024,
  maxHeldResponseBytes: 64 * 1024 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  stallTimeoutMs: 30_000,
};
// Longer than the usual proxy's, so that it is the proxy that closes.
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const MAX_HEADER_BYTES = 16 * 1024;
const STREAM_BYTES = 16 * 1024;
const SLOWEST_BYTES_PER_MS = 64;

/** Makes the server that turns sockets into plain records and back; it does not listen yet. */
export function createHttpServer(options: NodeHttpOptions): Server {
  const { handle, trustedProxies, log } = options;
  const limits = { ...limitsFor(options.maxBodyBytes), ...options.limits };
  const bodies = createMemoryBudget(limits.maxHeldBodyBytes);
  const responses = createMemoryBudget(limits.maxHeldResponseBytes);
  const connections = createConnections(limits, trustedProxies);
  const streams = createResponseStreams(options.stopping ?? new AbortController().signal);

  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    highWaterMark: STREAM_BYTES,
    connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
    requireHostHeader: false, // findHeadError answers for it, as clearly as for everything else
    noDelay: true,
  });
  server.maxConnections = limits.maxConnections;

  function onRequest(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    expectation: "none" | "continue" | "unknown",
  ): void {
    const connection = connections.take(incoming.socket);
    if (!connection) return;
    const body = createIncomingBody(incoming, bodies, () => {
      if (expectation === "continue") outgoing.writeContinue();
    });
    const request = new NodeRequest(incoming, body, trustedProxies);
    let unsent: Reservation | undefined;
    const release = (): void => {
      connection.unanswered.delete(release);
      body.release();
      unsent?.release();
      if (!outgoing.writableFinished) request.abort();
    };
    connection.unanswered.add(release);
    connection.receiving = { incoming, fail: body.fail };
    outgoing.on("close", () => {
      if (!connection.unanswered.has(release)) return; // its connection has closed before
      release();
      const isOver = connection.isClosing || !server.listening;
      if (isOver && connection.unanswered.size === 0) endConnection(connection);
    });
    const problem = findHeadError(incoming) ?? (expectation === "unknown" ? expected() : undefined);
    if (problem) connection.isClosing = true;
    const answered = problem ? Promise.resolve(refusal(problem, request.id)) : handle(request);
    answered
      .then((response) =>
        sendResponse(response, incoming, outgoing, {
          isLast: () =>
            problem !== undefined || !server.listening && connection.unanswered.size === 1,
          reserve(bytes) {
            if (!connection.unanswered.has(release)) return; // nobody is there any longer
            unsent = responses.reserve(() => incoming.socket.destroy());
            unsent.add(bytes);
          },
          request,
          streams,
        })
      )
      .catch((error: unknown) => {
        if (!isClientGone(error)) log.error("response cut off", { request_id: request.id, error });
        outgoing.destroy();
      });
  }

  /** What came is not a request, or not all of one: the last thing that is read of a connection. */
  function onError(code: string | undefined, socket: Socket): void {
    const connection = connections.find(socket);
    if (!connection || !socket.writable || code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    if (connection.isClosing) return;
    connection.isClosing = true;
    connection.problem = errorOf(code);
    const { receiving } = connection;
    if (receiving && !receiving.incoming.complete) {
      receiving.fail(connection.problem); // its request is answered with this
      delete connection.problem;
    }
    if (connection.unanswered.size === 0) endConnection(connection);
  }

  /** Says what was wrong, after the responses to all that came before, and takes nothing more. */
  function endConnection({ socket, problem }: Connection): void {
    if (!problem) {
      socket.destroySoon();
      return;
    }
    refuseSocket(socket, refusal(problem, newRequestId()));
  }

  function refusal(problem: Problem, requestId: string): HttpResponse {
    options.onRefusal(problem.status);
    log.info("refused", { status: problem.status, code: problem.code, request_id: requestId });
    return problemResponse(problem, requestId);
  }

  server.on("connection", (socket) => connections.open(socket));
  // Full: those that only wait for another request make room for who comes next.
  server.on("drop", () => server.closeIdleConnections());
  server.on("request", (incoming, outgoing) => onRequest(incoming, outgoing, "none"));
  server.on("checkContinue", (incoming, outgoing) => onRequest(incoming, outgoing, "continue"));
  server.on("checkExpectation", (incoming, outgoing) => onRequest(incoming, outgoing, "unknown"));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    onError(error.code, socket);
  });
  server.on("connect", (_incoming, socket: Socket) => onError("CONNECT", socket));
  server.on("listening", connections.watch);
  server.on("close", connections.unwatch);
  return server;
}

/** A client that went away before its response is nobody's error. */
function isClientGone(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return ["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET", "EPIPE"].includes(String(code));
}

/** Where larger bodies are taken there is room for two of them, and time for them to arrive. */
function limitsFor(maxBodyBytes: number): HttpLimits {
  const { maxHeldBodyBytes, requestTimeoutMs } = DEFAULT_LIMITS;
  return {
    ...DEFAULT_LIMITS,
    maxHeldBodyBytes: Math.max(maxHeldBodyBytes, 2 * maxBodyBytes),
    requestTimeoutMs: Math.max(requestTimeoutMs, maxBodyBytes / SLOWEST_BYTES_PER_MS),
  };
}

function expected(): Problem {
  return new Problem(417, "expectation_failed", "Only 100-continue can be expected here.");
}

function errorOf(code: string | undefined): Problem {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(431, "headers_too_large", "The headers are larger than 16 KiB.");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new Problem(413, "too_large", "The chunk extensions are larger than 16 KiB.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem(408, "timeout", "The request took too long to arrive.");
    case "CONNECT":
      return new Problem(405, "method_not_allowed", "This is no proxy.", {
        headers: { Allow: "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS" },
      });
    default:
      return new Problem(400, "malformed", "This is not an HTTP/1.1 request.");
  }
}
