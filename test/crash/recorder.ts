import { createServer } from "node:http";
import { listenOnLoopback } from "./listen.ts";

/** One callback that came in. */
export interface Arrival {
  /** Its `webhook-id`. */
  readonly id: string;
  /** By the monotonic clock. */
  readonly atMs: number;
  /** What it was answered; undefined: its sender was gone by then, or it still waits. */
  status?: number;
}

/** What subscribers of the crash matrix have received. */
export interface Recorder {
  readonly url: string;
  /** How often each delivery came, by its `webhook-id`. */
  readonly counts: ReadonlyMap<string, number>;
  /** Every callback, in order. */
  readonly arrivals: readonly Arrival[];
  /** The `webhook-id` of each path and event number, as `pairKey` writes them. */
  readonly pairs: ReadonlyMap<string, string>;
  /** Pairs that came with more than one `webhook-id`. */
  readonly torn: ReadonlySet<string>;
  /** Requests that are not answered yet. */
  open(): number;
  /** Connections: what came by one that is closed has been counted. */
  connections(): number;
  /** Called for the next callback, which is then never answered; undefined: nobody. */
  onNextPost(told: (() => void) | undefined): void;
  /** Called when a handler that is to be interrupted has dispatched. */
  onNextHandler(told: () => void): void;
  /** How long callbacks wait for their response. */
  delay(ms: () => number): void;
  /** What they are answered; 204 by default. */
  answer(status: () => number): void;
  close(): Promise<void>;
}

export function pairKey(path: string, n: number): string {
  return `${path} ${n}`;
}

/** Where a handler says that it has dispatched; it is answered after a while. */
export const HANDLER_PATH = "/handler";

/**
 * Starts the receiver of the crash matrix: it returns 204, and never forgets.
 *
 * @param numberOf the number that an event's data carries, and no other event of its path
 */
export async function startRecorder(
  numberOf: (data: Readonly<Record<string, unknown>>) => number = ({ n }) => Number(n),
): Promise<Recorder> {
  const counts = new Map<string, number>();
  const pairs = new Map<string, string>();
  const torn = new Set<string>();
  const arrivals: Arrival[] = [];
  let delayMs = () => 0;
  let chooseStatus = () => 204;
  let open = 0;
  let tellPost: (() => void) | undefined;
  let tellHandler: (() => void) | undefined;

  const server = createServer((request, response) => {
    const { url: path = "", headers } = request;
    request.on("error", () => response.destroy());
    request.toArray().then((chunks) => {
      if (path === HANDLER_PATH) {
        tellHandler?.();
        tellHandler = undefined;
        setTimeout(() => response.end(), 50);
        return;
      }
      const id = String(headers["webhook-id"]);
      counts.set(id, (counts.get(id) ?? 0) + 1);
      const arrival: Arrival = { id, atMs: performance.now() };
      arrivals.push(arrival);
      const key = pairKey(path, numberOf(JSON.parse(String(Buffer.concat(chunks)))));
      if ((pairs.get(key) ?? id) !== id) torn.add(key);
      pairs.set(key, id);
      open++;
      response.once("close", () => open--);
      const told = tellPost;
      tellPost = undefined;
      if (told) return told();
      setTimeout(() => {
        if (response.destroyed) return;
        arrival.status = chooseStatus();
        response.writeHead(arrival.status).end();
      }, delayMs());
    }, () => response.destroy());
  });
  let connections = 0;
  server.on("connection", (socket) => {
    connections++;
    socket.once("close", () => setImmediate(() => connections--)); // after its last request
  });
  const url = await listenOnLoopback(server);
  return {
    url,
    counts,
    arrivals,
    pairs,
    torn,
    open: () => open,
    connections: () => connections,
    onNextPost: (told) => void (tellPost = told),
    onNextHandler: (told) => void (tellHandler = told),
    delay: (ms) => void (delayMs = ms),
    answer: (status) => void (chooseStatus = status),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
