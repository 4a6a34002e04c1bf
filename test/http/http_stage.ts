import assert from "node:assert/strict";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { after, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Cidr } from "../../src/base/cidr.ts";
import type { HttpRequest, HttpResponse } from "../../src/base/http_message.ts";
import { createLogger } from "../../src/base/log.ts";
import { Problem } from "../../src/base/problem.ts";
import type { HttpLimits } from "../../src/http/limits.ts";
import { createHttpServer } from "../../src/http/node_http.ts";
import { problemResponse } from "../../src/http/respond.ts";
import { listen } from "../helpers/listen.ts";
import {
  exchangeRaw,
  openRaw,
  type RawExchange,
  type RawOptions,
  type RawResponse,
} from "../helpers/raw_http.ts";

/** The largest body that the stage takes, in bytes. */
export const MAX_BODY = 64 * 1024;

/** A GET request on the wire; each of the fields ends with CR LF. */
export const get = (path = "/", fields = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
export const CONNECT = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n";
/** A POST request on the wire; each of the fields ends with CR LF. */
export const post = (fields: string, body = "") =>
  `POST /x HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;
export const CHUNKED = "Transfer-Encoding: chunked\r\n";

/** A server of src/http with a handler of the test, and no other part of Gatepost. */
export interface HttpStage {
  readonly url: string;
  readonly server: Server;
  /** The requests that the handler got, in order. */
  readonly requests: HttpRequest[];
  /** The statuses of what was refused before the handler. */
  readonly refusals: number[];
  readonly log: string[];
  /** Opens a connection, which is destroyed after the test. */
  open(): Promise<Socket>;
  exchange(bytes: string, options?: RawOptions): Promise<RawExchange>;
  /** As `exchange`; asserts that the server closes the connection. */
  exchangeToEnd(bytes: string, options?: RawOptions): Promise<RawExchange>;
}

/** Responds with what was requested; reads the body of POST and PUT. */
export async function echo(request: HttpRequest): Promise<HttpResponse> {
  const { method, path, query } = request;
  const reads = method === "POST" || method === "PUT";
  const bytes = reads ? (await request.readBody(MAX_BODY)).length : 0;
  return { status: 200, body: JSON.stringify({ method, path, query, bytes }) };
}

/** Responds as `echo` does, after a delay. */
export const echoAfter = (ms: number) => (request: HttpRequest) =>
  delay(ms).then(() => echo(request));

/** A stream of these texts; it breaks if the generator throws. */
export function streamOf(generate: () => AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      for await (const text of generate()) controller.enqueue(Buffer.from(text));
      controller.close();
    },
  });
}

const HEADERS = { "X-Content-Type-Options": "nosniff" };

/** Starts a server whose handler turns problems into responses, as the pipeline does. */
export async function startHttpStage(
  t: TestContext,
  { handle = echo, limits = {}, stopping, trustedProxies = [] }: {
    handle?: (request: HttpRequest) => Promise<HttpResponse> | HttpResponse;
    limits?: Partial<HttpLimits>;
    stopping?: AbortSignal;
    trustedProxies?: readonly Cidr[];
  } = {},
): Promise<HttpStage> {
  const requests: HttpRequest[] = [];
  const refusals: number[] = [];
  const lines: string[] = [];
  const write = (text: string) => void lines.push(text);
  const log = createLogger({ level: "debug", write, now: Date.now });
  const server = createHttpServer({
    async handle(request) {
      requests.push(request);
      try {
        const { headers, ...response } = await handle(request);
        return { ...response, headers: { ...HEADERS, "X-Request-Id": request.id, ...headers } };
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(500, "internal", "Failed.");
        return problemResponse(problem, request.id);
      }
    },
    trustedProxies,
    maxBodyBytes: MAX_BODY,
    log,
    onRefusal: (status) => void refusals.push(status),
    limits,
    ...stopping && { stopping },
  });
  const host = await listen(t, server);
  const port = Number(host.replace(/.*:/, ""));
  return {
    url: `http://${host}/`,
    server,
    requests,
    refusals,
    log: lines,
    async open() {
      const socket = await openRaw(port);
      t.after(() => socket.destroy());
      return socket;
    },
    exchange: (bytes, options) => exchangeRaw(port, bytes, options),
    async exchangeToEnd(bytes, options) {
      const exchange = await exchangeRaw(port, bytes, { waitMs: 5000, ...options });
      assert.ok(exchange.isClosed, `still open after ${JSON.stringify(exchange.text)}`);
      return exchange;
    },
  };
}

/** Asserts what every refusal has, whichever part made it. */
export function assertProblem(response: RawResponse | undefined, status: number, note = ""): void {
  assert.ok(response, note);
  assert.equal(response.status, status, `${note} ${response.body}`);
  assert.equal(response.headers["content-type"], "application/problem+json", note);
  assert.equal(response.headers["x-content-type-options"], "nosniff", note);
  assert.match(response.headers["date"] ?? "", /GMT$/, note);
  const problem: Record<string, unknown> = JSON.parse(response.body);
  assert.match(String(problem["type"]), /^urn:gatepost:problem:[a-z_]+$/, note);
  assert.equal(problem["status"], status, note);
  assert.equal(problem["request_id"], response.headers["x-request-id"], note);
  assert.match(response.headers["x-request-id"] ?? "", /^[A-Za-z0-9._:-]+$/, note);
  assert.ok(response.line.length > 4, `${note}: a status line has its phrase`);
}

after(() => {
  // A server that a test leaves open would keep the run from ending.
  const servers = process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap");
  assert.ok(servers.length <= 1);
});
