import { fork } from "node:child_process";
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";

/** One callback as it reached the subscriber. */
export interface ReceivedCallback {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body's bytes as text. */
  readonly body: string;
  /** Whether the signature is valid for the subscription's secret and exactly these bytes. */
  readonly isGenuine: boolean;
  /** The status that the subscriber returned. */
  readonly status: number;
  readonly atMs: number;
}

/** A subscriber in a process of its own. */
export interface Subscriber {
  readonly url: string;
  readonly pid: number;
  /** Gives the subscriber the secret of the subscription. */
  trust(secret: string): void;
  /** Makes it answer the next callbacks with these statuses, and later ones with 204. */
  failWith(...statuses: readonly number[]): void;
  /** Waits until `n` callbacks have come since the last `forget`; throws after `timeoutMs`. */
  waitFor(n: number, timeoutMs: number): Promise<readonly ReceivedCallback[]>;
  forget(): void;
  /** Called for every callback. */
  onCallback(listener: (callback: ReceivedCallback) => void): void;
  close(): Promise<void>;
}

/** Messages to the subscriber, one at a time. */
type Order = { readonly secret: string } | { readonly failWith: readonly number[] };

/** Messages from the subscriber. */
type News = { readonly url: string } | { readonly callback: ReceivedCallback };

const START_MS = 10_000;
const MAX_BODY_BYTES = 1_048_576;
/** Standard Webhooks: older messages may be replays. */
const TOLERANCE_SECONDS = 300;

/** Starts the subscriber and waits until it listens. */
export async function startSubscriber(): Promise<Subscriber> {
  const child = fork(fileURLToPath(import.meta.url), { execArgv: [], env: {} });
  const endWithDemo = () => void child.kill("SIGKILL");
  process.once("exit", endWithDemo);
  const listeners = new Set<(callback: ReceivedCallback) => void>();
  let received: ReceivedCallback[] = [];

  const [first]: News[] = await once(child, "message", { signal: AbortSignal.timeout(START_MS) });
  if (first === undefined || !("url" in first)) throw new Error("the subscriber did not start");
  child.on("message", (news: News) => {
    if (!("callback" in news)) return;
    received.push(news.callback);
    for (const listener of [...listeners]) listener(news.callback);
  });
  const tell = (order: Order) => void child.send(order);

  return {
    url: first.url,
    pid: child.pid ?? 0,
    trust: (secret) => tell({ secret }),
    failWith: (...statuses) => tell({ failWith: statuses }),
    waitFor: (n, timeoutMs) =>
      new Promise((resolve, reject) => {
        const settle = (run: () => void) => {
          clearTimeout(timer);
          listeners.delete(check);
          run();
        };
        const check = () => {
          if (received.length >= n) settle(() => resolve([...received]));
        };
        const late = () => new Error(`${received.length} of ${n} callbacks in ${timeoutMs} ms`);
        const timer = setTimeout(() => settle(() => reject(late())), timeoutMs);
        listeners.add(check);
        check();
      }),
    forget() {
      received = [];
    },
    onCallback: (listener) => void listeners.add(listener),
    async close() {
      process.off("exit", endWithDemo);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/**
 * Whether a callback was signed with the secret (Standard Webhooks v1): HMAC-SHA-256 over
 * `id.timestamp.body`, over the bytes as they came, before anything parses them.
 */
export function isGenuine(
  headers: IncomingHttpHeaders,
  body: string,
  secret: string,
  nowMs: number,
): boolean {
  const id = String(headers["webhook-id"]);
  const timestamp = String(headers["webhook-timestamp"]);
  const ageSeconds = nowMs / 1000 - Number(timestamp);
  if (!(Math.abs(ageSeconds) <= TOLERANCE_SECONDS)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest();
  // While a secret is being replaced there are two signatures.
  return String(headers["webhook-signature"]).split(" ").some((signature) => {
    const [version, text = ""] = signature.split(",");
    const given = Buffer.from(text, "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** The subscriber's own process. */
function listen(): void {
  let secret = "";
  let statuses: readonly number[] = [];
  const tell = (news: News) => void process.send?.(news);

  process.on("message", (order: Order) => {
    if ("secret" in order) secret = order.secret;
    else statuses = order.failWith;
  });
  // This process ends with the demo, however that ends. The demo handles Ctrl+C.
  process.once("disconnect", () => process.exit(0));
  process.on("SIGINT", () => {});

  const take = (request: IncomingMessage, body: string): ReceivedCallback => {
    const { method = "", url = "", headers } = request;
    const [status = 204, ...rest] = statuses;
    statuses = rest;
    const atMs = Date.now();
    const genuine = isGenuine(headers, body, secret, atMs);
    return { method, path: url, headers, body, isGenuine: genuine, status, atMs };
  };
  const server = createServer((request, response) => {
    readText(request).then((body) => {
      const callback = take(request, body);
      response.writeHead(callback.status).end();
      tell({ callback });
    }, () => response.destroy());
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    tell({ url: `http://127.0.0.1:${port}` });
  });
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

if (import.meta.main) listen();
