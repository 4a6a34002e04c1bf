import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { endWithParent } from "./post_process.ts";

/** Subscribers in a process of their own: some return 204 at once, one never responds. */
export interface PostReceiver {
  /** The endpoints that respond, each on a loopback address of its own. */
  readonly urls: readonly string[];
  readonly hangingUrl: string;
  /** How many requests have been answered. */
  count(): Promise<number>;
  /** When the n-th request came, in milliseconds since 1970; undefined if it has not come yet. */
  timeOf(n: number): Promise<number | undefined>;
  /** Waits until `n` requests have been answered; throws after `timeoutMs`. */
  waitFor(n: number, timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

type Order = { readonly count: true } | { readonly timeOf: number };
type News = { readonly urls: string[]; readonly hangingUrl: string } | {
  readonly value: number | undefined;
};

const ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
const HANGING_ADDRESS = "127.0.0.9";
const ANSWER = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const POLL_MS = 20;

/** Starts the subscribers and waits until they listen. */
export async function startPostReceiver(): Promise<PostReceiver> {
  const child = endWithParent(fork(fileURLToPath(import.meta.url), { execArgv: [], env: {} }));
  const [first]: News[] = await once(child, "message");
  if (first === undefined || !("urls" in first)) throw new Error("The receiver did not start");
  let turn: Promise<unknown> = Promise.resolve();
  const ask = (order: Order): Promise<number | undefined> => {
    const response = turn.then(async () => {
      child.send(order);
      const [news]: News[] = await once(child, "message");
      return news !== undefined && "value" in news ? news.value : undefined;
    });
    turn = response;
    return response;
  };
  const count = async () => await ask({ count: true }) ?? 0;
  return {
    urls: first.urls,
    hangingUrl: first.hangingUrl,
    count,
    timeOf: (n) => ask({ timeOf: n }),
    async waitFor(n, timeoutMs) {
      const endMs = performance.now() + timeoutMs;
      while (await count() < n) {
        if (performance.now() > endMs) throw new Error(`${n} callbacks took too long`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    async close() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function listen(address: string, onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    onConnection(socket);
  });
  server.listen(0, address);
  await once(server, "listening");
  return `http://${address}:${(server.address() as AddressInfo).port}`;
}

/** Does as little as possible, because it shares the machine with what is measured. */
function answerAll(onRequest: () => void): (socket: Socket) => void {
  return (socket) => {
    let pending = "";
    socket.on("data", (chunk) => {
      pending += chunk.toString("latin1");
      const head = pending.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(pending)?.[1] ?? 0);
      if (pending.length < head + 4 + length) return;
      pending = pending.slice(head + 4 + length);
      onRequest();
      socket.write(ANSWER);
    });
  };
}

async function serve(): Promise<void> {
  const times: number[] = [];
  const onRequest = () => void times.push(performance.timeOrigin + performance.now());
  const urls = await Promise.all(ADDRESSES.map((each) => listen(each, answerAll(onRequest))));
  const hangingUrl = await listen(HANGING_ADDRESS, (socket) => void socket.resume());
  process.on("message", (order: Order) => {
    process.send?.({ value: "count" in order ? times.length : times[order.timeOf - 1] });
  });
  process.once("disconnect", () => process.exit(0));
  process.send?.({ urls, hangingUrl });
}

if (import.meta.main) await serve();
