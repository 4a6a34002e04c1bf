import { createServer } from "node:http";
import { listenOnLoopback } from "../helpers/listen.ts";

/** One callback that came in. */
export interface Arrival {
  /** Its `webhook-id`. */
  readonly id: string;
  /** By the monotonic clock. */
  readonly atMs: number;
  /** The status of its response; undefined: its sender was gone by then, or it still waits. */
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
  /** Counts the requests that have no response yet. */
  open(): number;
  /** Counts the open connections; whatever came on a closed one has been recorded. */
  connections(): number;
  /** Sets what the next callback calls, which then gets no response; undefined: nothing. */
  onNextPost(notify: (() => void) | undefined): void;
  /** Sets what is called when a handler that is to be interrupted has dispatched. */
  onNextHandler(notify: () => void): void;
  /** Sets how long callbacks wait for their response. */
  delay(ms: () => number): void;
  /** Sets the status of their responses; 204 by default. */
  answer(status: () => number): void;
  close(): Promise<void>;
}

export function pairKey(path: string, n: number): string {
  return `${path} ${n}`;
}

/** Where a handler says that it has dispatched; the response comes after a while. */
export const HANDLER_PATH = "/handler";

/**
 * Starts the receiver of the crash matrix: it returns 204, and records everything.
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
  let notifyPost: (() => void) | undefined;
  let notifyHandler: (() => void) | undefined;

  const server = createServer((request, response) => {
    const { url: path = "", headers } = request;
    request.on("error", () => response.destroy());
    request.toArray().then((chunks) => {
      if (path === HANDLER_PATH) {
        notifyHandler?.();
        notifyHandler = undefined;
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
      const notify = notifyPost;
      notifyPost = undefined;
      if (notify) return notify();
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
  const url = `http://${await listenOnLoopback(server)}`;
  return {
    url,
    counts,
    arrivals,
    pairs,
    torn,
    open: () => open,
    connections: () => connections,
    onNextPost: (notify) => void (notifyPost = notify),
    onNextHandler: (notify) => void (notifyHandler = notify),
    delay: (ms) => void (delayMs = ms),
    answer: (status) => void (chooseStatus = status),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
