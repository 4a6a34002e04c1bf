import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Requests that are sent on schedule, even if earlier ones have no response yet. */
export interface PacedOptions {
  readonly port: number;
  readonly perSecond: number;
  readonly durationMs: number;
  /** The bytes of the n-th request. */
  readonly next: (index: number) => Buffer;
  /** The statuses that responses may have. */
  readonly statuses: readonly number[];
}

/** The result of a paced load. */
export interface PacedResult {
  /** From writing a request to having its response, in milliseconds, sorted. */
  readonly latenciesMs: Float64Array;
  /** How many responses had each status. */
  readonly byStatus: Readonly<Record<number, number>>;
}

interface Connection {
  readonly socket: Socket;
  pending: string;
  sentMs: number;
}

const PATIENCE_MS = 10_000;

/**
 * Sends `perSecond` requests a second over as many keep-alive connections as needed, and waits for
 * all responses. Throws if a response has a wrong status, or takes longer than 10 s.
 */
export async function runPaced(options: PacedOptions): Promise<PacedResult> {
  const { port, perSecond, durationMs, statuses } = options;
  const total = Math.floor(perSecond * durationMs / 1000);
  const idle: Connection[] = [];
  const all: Connection[] = [];
  const latencies: number[] = [];
  const byStatus: Record<number, number> = {};
  let sent = 0;
  let failure: Error | undefined;

  function open(): Connection {
    const socket = connect(port, "127.0.0.1").setNoDelay(true);
    const connection: Connection = { socket, pending: "", sentMs: 0 };
    socket.on("error", (error) => failure ??= error);
    socket.on("data", (chunk) => receive(connection, chunk.toString("latin1")));
    all.push(connection);
    return connection;
  }

  function receive(connection: Connection, text: string): void {
    connection.pending += text;
    const { pending } = connection;
    const head = pending.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(pending.slice(0, head))?.[1] ?? 0);
    if (pending.length < head + 4 + length) return;
    const status = Number(pending.slice(9, 12));
    if (!statuses.includes(status)) failure ??= new Error(`Unexpected: ${pending.slice(0, 300)}`);
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    latencies.push(performance.now() - connection.sentMs);
    connection.pending = "";
    idle.push(connection);
  }

  function send(): void {
    const connection = idle.pop() ?? open();
    connection.sentMs = performance.now();
    connection.socket.write(options.next(sent++));
  }

  // The time to connect is not measured.
  const ready = Array.from({ length: 4 }, open);
  await Promise.all(ready.map(({ socket }) => once(socket, "connect")));
  idle.push(...ready);
  const startedMs = performance.now();
  const endMs = startedMs + durationMs + PATIENCE_MS;
  while (latencies.length < total && failure === undefined) {
    if (performance.now() > endMs) failure = new Error("An answer took longer than 10 s");
    const due = Math.min(total, Math.ceil((performance.now() - startedMs) * perSecond / 1000));
    while (sent < due) send();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (const { socket } of all) socket.destroy();
  if (failure !== undefined) throw failure;
  return { latenciesMs: Float64Array.from(latencies).sort(), byStatus };
}
