import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Certificate } from "./certificate.ts";

/** What the receiver does with one request. */
export type Reaction =
  /** Answers (204 by default), after a delay if there is one. */
  | {
    readonly kind: "answer";
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly delayMs?: number;
  }
  /** Returns 200 and sends a byte every `everyMs`, for ever or as many as `bytes` says. */
  | { readonly kind: "drip"; readonly everyMs: number; readonly bytes?: number }
  /** Returns 200 with an endless body, as fast as the client reads it. */
  | { readonly kind: "endless" }
  /** Reads the request and does not respond before `release()`. */
  | { readonly kind: "hang" }
  /** Ends the connection with FIN, without a response. */
  | { readonly kind: "close" }
  /** Ends the connection with RST. */
  | { readonly kind: "reset" }
  /** Writes these bytes instead of a response, and closes. */
  | { readonly kind: "raw"; readonly bytes: string };

/** One request that came in, with its whole body. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  /** Names and values as sent, alternating. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** When the whole body had come, in milliseconds since 1970. */
  readonly atMs: number;
}

export interface ReceiverOptions {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: Certificate;
}

/** A callback receiver on the loopback whose reactions a test sets. */
export interface Receiver {
  /** Without trailing slash: "http://127.0.0.1:40000". */
  readonly url: string;
  /** How many requests came to a path ("/a", query left out), or in all. */
  count(path?: string): number;
  /** How many connections are open. */
  connections(): number;
  /** The highest number of requests that were unanswered at one time. */
  peak(): number;
  /** How many requests hang. */
  hanging(): number;
  /** Responds to the hanging requests with a status, 204 by default. */
  release(status?: number): void;
  /** The recorded requests of a path, or all. Only the first 10,000 are kept. */
  requests(path?: string): readonly ReceivedRequest[];
  /** Sets the reactions to this path's next requests, one each; the last one stays. */
  react(path: string, ...reactions: readonly [Reaction, ...Reaction[]]): void;
  /** Sets a reaction that returns this status. */
  answer(path: string, status: number, headers?: Readonly<Record<string, string>>): void;
  /** Waits for `n` requests to a path, or in all, and returns them; throws after `timeoutMs`. */
  waitFor(n: number, timeoutMs: number, path?: string): Promise<readonly ReceivedRequest[]>;
  /** Forgets requests and reactions. */
  clear(): void;
  close(): Promise<void>;
}

const MAX_KEPT = 10_000;
const MAX_BODY_BYTES = 16_777_216;
const ENDLESS_CHUNK = Buffer.alloc(65_536, "x");

/** Starts a receiver; a path without a reaction returns 204. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { host = "127.0.0.1", port = 0, tls } = options;
  const reactions = new Map<string, Reaction[]>();
  const counts = new Map<string, number>();
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  const hanging = new Set<ServerResponse>();
  let kept: ReceivedRequest[] = [];
  let total = 0;
  let unanswered = 0;
  let peak = 0;

  const count = (path?: string) => (path === undefined ? total : (counts.get(path) ?? 0));
  const requests = (path?: string) =>
    path === undefined ? [...kept] : kept.filter(({ url }) => pathOf(url) === path);

  const nextReaction = (path: string): Reaction => {
    const planned = reactions.get(path) ?? [];
    return (planned.length > 1 ? planned.shift() : planned[0]) ?? { kind: "answer" };
  };

  const later = (ms: number, run: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timers.add(timer);
  };

  const onRequest: RequestListener = (request, response) => {
    unanswered += 1;
    peak = Math.max(peak, unanswered);
    response.once("close", () => (unanswered -= 1));
    // Some of these tests break the connection on purpose.
    request.on("error", () => response.destroy());
    readBody(request, (body) => {
      const { method = "", url = "", headers, rawHeaders } = request;
      const path = pathOf(url);
      total += 1;
      counts.set(path, count(path) + 1);
      const received = { method, url, headers, rawHeaders, body, atMs: Date.now() };
      if (kept.length < MAX_KEPT) kept.push(received);
      // Under TLS the socket of the request is not the one that can send RST.
      const { remotePort } = request.socket;
      const socket = [...sockets].find((each) => each.remotePort === remotePort);
      const reaction = nextReaction(path);
      if (reaction.kind === "hang") {
        hanging.add(response);
        response.once("close", () => hanging.delete(response));
      } else if (socket !== undefined) perform(reaction, socket, response, later);
      for (const check of [...waiting]) check();
    });
  };

  const server = tls === undefined
    ? createServer(onRequest)
    : createTlsServer({ key: tls.key, cert: tls.cert }, onRequest);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
  const listening = portOf(server.address());

  return {
    url: `${tls === undefined ? "http" : "https"}://${host}:${listening}`,
    count,
    connections: () => sockets.size,
    peak: () => peak,
    hanging: () => hanging.size,
    release(status = 204) {
      for (const response of hanging) response.writeHead(status).end();
      hanging.clear();
    },
    requests,
    react: (path, ...planned) => void reactions.set(path, [...planned]),
    answer: (path, status, headers = {}) =>
      void reactions.set(path, [{ kind: "answer", status, headers }]),
    waitFor: (n, timeoutMs, path) =>
      new Promise((resolve, reject) => {
        const finish = (run: () => void) => {
          clearTimeout(timer);
          waiting.delete(check);
          run();
        };
        const check = () => {
          if (count(path) >= n) finish(() => resolve(requests(path)));
        };
        const timer = setTimeout(() => {
          const what = `${count(path)} of ${n} requests to ${path ?? "the receiver"}`;
          finish(() => reject(new Error(`${what} within ${timeoutMs} ms`)));
        }, timeoutMs);
        waiting.add(check);
        check();
      }),
    clear() {
      kept = [];
      total = 0;
      peak = unanswered;
      counts.clear();
      reactions.clear();
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function perform(
  reaction: Exclude<Reaction, { kind: "hang" }>,
  socket: Socket,
  response: ServerResponse,
  later: (ms: number, run: () => void) => void,
): void {
  switch (reaction.kind) {
    case "answer": {
      const { status = 204, headers = {}, body = "", delayMs = 0 } = reaction;
      const answer = () => void response.writeHead(status, headers).end(body);
      return delayMs === 0 ? answer() : later(delayMs, answer);
    }
    case "drip": {
      response.writeHead(200);
      const drip = (left: number) => {
        if (response.destroyed) return;
        if (left <= 0) return void response.end();
        response.write(".");
        later(reaction.everyMs, () => drip(left - 1));
      };
      return drip(reaction.bytes ?? Infinity);
    }
    case "endless": {
      response.writeHead(200);
      const pour = () => {
        while (!response.destroyed && response.write(ENDLESS_CHUNK));
      };
      response.on("drain", pour);
      return pour();
    }
    case "close":
      return void response.socket?.end();
    case "reset":
      return void socket.resetAndDestroy();
    case "raw":
      return void response.socket?.end(reaction.bytes);
    default:
      reaction satisfies never;
  }
}

function readBody(request: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) request.destroy();
    else chunks.push(chunk);
  });
  request.once("end", () => done(Buffer.concat(chunks)));
}

function pathOf(url: string): string {
  return url.split("?")[0] ?? "";
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
