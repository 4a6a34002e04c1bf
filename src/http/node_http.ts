import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Cidr } from "../base/cidr.ts";
import { ALL_METHODS, type HttpResponse, type HttpRequest } from "../base/http_message.ts";
import type { Log } from "../base/log.ts";
import { malformed, Problem } from "../base/problem.ts";
import { type Connection, createConnections } from "./connections.ts";
import { type HttpLimits, limitsFor } from "./limits.ts";
import { createMemoryBudget, type Reservation } from "./memory_budget.ts";
import { IncomingBody } from "./node_body.ts";
import { CountedMessage } from "./node_message.ts";
import { refuseSocket, sendResponse } from "./node_response.ts";
import { NodeRequest } from "./node_request.ts";
import { createStreamSender } from "./node_stream.ts";
import { estimateHeld, findHeadError } from "./request_head.ts";
import { newRequestId } from "./request_id.ts";
import { problemResponse } from "./respond.ts";

// Not by an import, which would load all of fetch: see base/status_text.ts.
const { createServer } = process.getBuiltinModule("node:http");

/** Makes the server that turns sockets into plain records and back; it does not listen yet. */
export function createHttpServer(options: {
  /** Responds to every request; it must not throw. */
  readonly handle: (request: HttpRequest) => Promise<HttpResponse>;
  readonly trustedProxies: readonly Cidr[];
  /** The largest body that any route takes. */
  readonly maxBodyBytes: number;
  readonly log: Log;
  /** Called, for the metrics, for each refusal that comes before `handle`. */
  readonly onRefusal: (status: number) => void;
  readonly stopping?: AbortSignal;
  readonly limits?: Partial<HttpLimits>;
}): Server {
  const { handle, trustedProxies, log } = options;
  const limits = { ...limitsFor(options.maxBodyBytes), ...options.limits };
  const budgets = {
    bodies: createMemoryBudget(limits.maxHeldBodyBytes),
    parsed: { heldBytes: 0, maxBytes: limits.maxParsedBytes },
  };
  const responses = createMemoryBudget(limits.maxHeldResponseBytes);
  const connections = createConnections(limits, trustedProxies);
  const sendStream = createStreamSender(options.stopping ?? new AbortController().signal);

  const server = createServer({
    IncomingMessage: CountedMessage,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    maxHeaderSize: 16 * 1024,
    highWaterMark: 16 * 1024,
    connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
    requireHostHeader: false, // findHeadError checks it, with a clearer response
  });
  server.maxConnections = limits.maxConnections;
  // A client that has closed its side may still want its responses.
  Object.assign(server, { httpAllowHalfOpen: true });

  function onRequest(
    incoming: CountedMessage,
    outgoing: ServerResponse,
    expectation: "none" | "continue" | "unknown",
  ): void {
    const connection = connections.accept(incoming);
    if (!connection) return;
    incoming.countPieces(connection, connections.countPiece);
    const body = new IncomingBody(incoming, budgets, {
      onStart() {
        if (expectation === "continue") outgoing.writeContinue();
      },
      onWhole: (parsedBytes) => connections.countBytes(connection, parsedBytes),
    });
    const request = new NodeRequest(incoming, body, trustedProxies);
    const { unanswered } = connection;
    const pipelinedBytes = unanswered.length > 0 ? estimateHeld(incoming) : 0;
    connections.countPipelined(pipelinedBytes);
    let reservation: Reservation | undefined;
    const exchange = {
      request,
      release(): void {
        unanswered.splice(unanswered.indexOf(exchange), 1);
        body.release();
        connections.countPipelined(-pipelinedBytes);
        reservation?.release();
        if (!outgoing.writableFinished) request.abort();
      },
    };
    const reserve = (bytes: number): void => {
      if (!unanswered.includes(exchange)) return; // the client has gone
      incoming.socket.setTimeout(limits.stallTimeoutMs); // only here: it costs, and few wait
      if (bytes === 0) return; // a response that holds nothing must not be evicted
      reservation ??= responses.reserve(() => incoming.socket.destroy());
      reservation.add(bytes);
      connections.countBytes(connection, bytes);
    };
    unanswered.push(exchange);
    connection.receiving = body;
    outgoing.on("close", () => {
      if (!unanswered.includes(exchange)) return; // its connection closed first
      exchange.release();
      if (!outgoing.writableFinished) {
        // Ended before its turn: Node still hands it the socket, and never takes that back.
        outgoing.once("socket", () => incoming.socket.destroy());
      }
      const isOver = connection.isClosing || !server.listening;
      if (isOver && unanswered.length === 0) endConnection(connection);
    });
    const problem = findHeadError(incoming) ??
      (expectation === "unknown" ? errorOf("EXPECTATION") : undefined);
    // Node's parser stops behind a request to upgrade, and no upgrade is accepted here.
    const { upgrade, connection: options = "" } = incoming.headers;
    const upgrades = upgrade !== undefined && /\bupgrade\b/i.test(options);
    if (problem || upgrades) connection.isClosing = true;
    (problem ? Promise.resolve(refusal(problem, request.id)) : handle(request))
      .then((response) =>
        sendResponse(response, incoming, outgoing, {
          isLast: () =>
            connection.isClosing
              ? connection.receiving?.incoming === incoming && !connection.problem
              : !server.listening && unanswered.length === 1,
          reserve,
          request,
          sendStream,
        })
      )
      .catch((error: unknown) => {
        if (!isClientGone(error)) log.error("response cut off", { request_id: request.id, error });
        outgoing.destroy();
      });
  }

  /** Handles input that is no request or only part of one. The connection is read no further. */
  function onError(code: string | undefined, socket: Socket): void {
    const connection = connections.find(socket);
    if (!connection || !socket.writable || code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    const { receiving, isClosing } = connection;
    connection.isClosing = true;
    if (receiving && !receiving.incoming.complete) {
      receiving.fail(errorOf(code)); // becomes the response to that request
    } else if (isClosing) {
      return; // input after the last request is ignored
    } else {
      connection.problem = errorOf(code);
    }
    if (connection.unanswered.length === 0) endConnection(connection);
  }

  /** Ends the connection, with its problem if any, after the responses to earlier requests. */
  function endConnection({ socket, problem }: Connection): void {
    socket.setTimeout(limits.stallTimeoutMs);
    if (problem && socket.writable) refuseSocket(socket, refusal(problem, newRequestId()));
    else socket.destroySoon();
  }

  function refusal(problem: Problem, requestId: string): HttpResponse {
    options.onRefusal(problem.status);
    log.info("refused", { status: problem.status, code: problem.code, request_id: requestId });
    return problemResponse(problem, requestId);
  }

  server.on("connection", (socket) => connections.open(socket));
  // The server is full: idle connections close to make room for the next clients.
  server.on("drop", () => server.closeIdleConnections());
  server.on("request", (incoming, outgoing) => onRequest(incoming, outgoing, "none"));
  server.on("checkContinue", (incoming, outgoing) => onRequest(incoming, outgoing, "continue"));
  server.on("checkExpectation", (incoming, outgoing) => onRequest(incoming, outgoing, "unknown"));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    onError(error.code, socket);
  });
  server.on("connect", ({ socket }) => {
    // Node has removed the listeners that earlier responses, or a client that leaves, would need.
    socket.on("timeout", () => socket.destroy());
    if (connections.find(socket)?.unanswered.length) socket.destroy();
    else onError("CONNECT", socket);
  });
  return server.on("timeout", connections.timeOut);
}

/** Whether a client went away before its response, which is nobody's error. */
function isClientGone(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return ["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET", "EPIPE"].includes(String(code));
}

const ERRORS: Readonly<Record<string, ConstructorParameters<typeof Problem>>> = {
  HPE_HEADER_OVERFLOW: [431, "headers_too_large", "The headers are larger than 16 KiB."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "too_large", "The chunk extensions are larger than 16 KiB."],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "timeout", "The request took too long to arrive."],
  CONNECT: [
    405, "method_not_allowed", "This is not a proxy.", { headers: { Allow: ALL_METHODS } },
  ],
  EXPECTATION: [417, "expectation_failed", "Only 100-continue can be expected here."],
};

/** Returns the problem of a parser error, or of a request that this server does not serve. */
function errorOf(code = ""): Problem {
  const known = ERRORS[code];
  return known ? new Problem(...known) : malformed("This is not an HTTP/1.1 request.");
}
