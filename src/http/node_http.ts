import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Cidr } from "../base/cidr.ts";
import type { HttpAnswer, HttpRequest } from "../base/exchange.ts";
import { Problem } from "../base/problem.ts";
import { clientAddress } from "./client_address.ts";
import { newRequestId, readRequestId } from "./request_id.ts";
import { problemAnswer } from "./respond.ts";

/** What the HTTP server needs beside the handler. */
export interface NodeHttpOptions {
  /** Answers every request; it must not throw. */
  readonly handle: (request: HttpRequest) => Promise<HttpAnswer>;
  readonly trustedProxies: readonly Cidr[];
}

// Generous for people on slow lines, short enough that idle or dripping clients hold little.
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000; // longer than the usual proxy's, so that the proxy closes first
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 10_000;

/** Makes the server that turns sockets into plain records and back; it does not listen yet. */
export function createHttpServer({ handle, trustedProxies }: NodeHttpOptions): Server {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: 1000,
    noDelay: true,
  }, (incoming, response) => {
    const request = toRequest(incoming, response, trustedProxies);
    handle(request).then((answer) => send(answer, incoming, response))
      .catch(() => response.destroy()); // the client went away while it was being answered
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("clientError", refuse);
  server.on("connect", (_incoming, socket: Socket) => refuse({ code: "CONNECT" }, socket));
  return server;
}

function toRequest(
  incoming: IncomingMessage,
  response: ServerResponse,
  trustedProxies: readonly Cidr[],
): HttpRequest {
  const { headers, method = "GET", url = "/" } = incoming;
  const [path, query] = splitTarget(url);
  let abort: AbortController | undefined;
  return {
    id: readRequestId(headers["x-request-id"]) ?? newRequestId(),
    method,
    path,
    query,
    headers,
    get address() {
      const forwarded = headers["x-forwarded-for"];
      const text = Array.isArray(forwarded) ? forwarded.join(",") : forwarded;
      return clientAddress(incoming.socket.remoteAddress ?? "", text, trustedProxies);
    },
    get signal() {
      if (!abort) {
        const controller = abort = new AbortController();
        response.once("close", () => response.writableFinished || controller.abort());
      }
      return abort.signal;
    },
    readBody: (maxBytes) => readBody(incoming, maxBytes),
  };
}

/** Path and query of a request target in origin-form or absolute-form (RFC 9112 §3.2). */
function splitTarget(target: string): [path: string, query: string] {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? "";
  const rest = target.slice(origin.length);
  const mark = rest.indexOf("?");
  return mark < 0 ? [rest || "/", ""] : [rest.slice(0, mark) || "/", rest.slice(mark + 1)];
}

function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = () =>
    new Problem(413, "too_large", `The body is larger than ${maxBytes} bytes.`, {
      headers: { Connection: "close" }, // the rest is not worth reading
    });
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      incoming.pause();
      reject(tooLarge());
    });
    incoming.once("end", () => resolve(chunks.length === 1 && chunks[0] || Buffer.concat(chunks)));
    const cutOff = () => reject(new Problem(400, "cut_off", "The body ended too early."));
    incoming.once("error", cutOff);
    incoming.once("close", cutOff);
  });
}

async function send(
  answer: HttpAnswer,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = answer;
  const headers: OutgoingHttpHeaders = { ...answer.headers };
  if (body instanceof ReadableStream) {
    response.writeHead(status, headers);
    if (incoming.method === "HEAD") {
      await body.cancel();
      response.end();
    } else {
      await pipeline(Readable.fromWeb(body), response);
    }
    return;
  }
  if (status !== 204 && status !== 304) {
    headers["Content-Length"] = body === undefined ? 0 : Buffer.byteLength(body);
  }
  response.writeHead(status, headers);
  response.end(body);
}

/** Answers what was no request, as clearly as every other refusal. */
function refuse(error: { readonly code?: string | undefined }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const { status, headers, body } = problemAnswer(refusal(error.code), newRequestId());
  const head = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  const text = String(body);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\n${head.join("")}` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    () => socket.destroy(),
  );
}

function refusal(code: string | undefined): Problem {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(431, "headers_too_large", "The headers are larger than 16 KiB.");
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
