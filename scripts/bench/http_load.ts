import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** The options of a load of HTTP requests. */
export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly durationMs: number;
  /** The bytes of a connection's next request; it may use the body of the response before. */
  readonly next: (connection: number, lastBody: string | undefined) => Buffer | undefined;
  /** The status that every response must have. */
  readonly status: number;
}

/** The result of a load. */
export interface LoadResult {
  readonly count: number;
  readonly seconds: number;
  /** In milliseconds, sorted. */
  readonly latenciesMs: Float64Array;
}

/**
 * Sends requests over raw keep-alive connections. Each sends the next request once it has the
 * response. The code does as little as possible, because it shares the machine with what it
 * measures. Throws if a response has another status than it should.
 */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = [];
  const startedMs = performance.now();
  const endMs = startedMs + options.durationMs;
  const connections = Array.from({ length: options.connections }, async (_, index) => {
    const socket = connect(options.port, "127.0.0.1").setNoDelay(true);
    await once(socket, "connect");
    await runConnection(socket, index, options, endMs, latencies);
    socket.destroy();
  });
  await Promise.all(connections);
  const seconds = (performance.now() - startedMs) / 1000;
  return { count: latencies.length, seconds, latenciesMs: Float64Array.from(latencies).sort() };
}

function runConnection(
  socket: Socket,
  index: number,
  { next, status, durationMs: _ }: LoadOptions,
  endMs: number,
  latencies: number[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let pending = "";
    let sentMs = 0;
    const send = (lastBody: string | undefined): void => {
      const bytes = performance.now() < endMs ? next(index, lastBody) : undefined;
      if (!bytes) return resolve();
      sentMs = performance.now();
      socket.write(bytes);
    };
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("The server closed a connection")));
    socket.on("data", (chunk) => {
      pending = pending === "" ? chunk.toString("latin1") : pending + chunk.toString("latin1");
      const head = pending.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(pending.slice(0, head))?.[1] ?? 0);
      if (pending.length < head + 4 + length) return;
      if (Number(pending.slice(9, 12)) !== status) {
        return reject(new Error(`Unexpected answer: ${pending.slice(0, 600)}`));
      }
      latencies.push(performance.now() - sentMs);
      const body = pending.slice(head + 4);
      pending = "";
      send(body);
    });
    send(undefined);
  });
}

/** The bytes of one HTTP/1.1 request. */
export function requestBytes(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = "",
): Buffer {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...method === "GET" ? [] : [`Content-Length: ${Buffer.byteLength(body)}`],
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** A percentile (0 to 1) of sorted values. */
export function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
