import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { endWithParent } from "./post_process.ts";
import { PAYLOAD } from "./post_seed.ts";

/** The result of a loop of `fetch` alone. */
export interface BareLoop {
  readonly perSecond: number;
  readonly cpuMsEach: number;
}

interface Order {
  readonly urls: readonly string[];
  readonly concurrency: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
}

const HEADERS = {
  "Content-Type": "application/json",
  "User-Agent": "Gatepost/0.0.0@unknown",
  "webhook-id": "d0mkf3q1c000aaaaaaaaaaaa00000001",
  "webhook-timestamp": "1900000000",
  "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
  "gatepost-event": "order.created",
  "gatepost-attempt": "1",
};

/** POSTs the same bytes with `fetch` alone, several at once, in a process of its own. */
export async function runBareLoop(order: Order): Promise<BareLoop> {
  const child = endWithParent(fork(fileURLToPath(import.meta.url), { execArgv: [], env: {} }));
  child.send(order);
  const [result]: BareLoop[] = await once(child, "message");
  if (result === undefined) throw new Error("The loop gave no result");
  return result;
}

async function loop({ urls, concurrency, warmUpMs, durationMs }: Order): Promise<BareLoop> {
  let count = 0;
  let isOver = false;
  const post = async (first: number) => {
    for (let index = first; !isOver; index += concurrency) {
      const url = urls[index % urls.length] ?? "";
      const response = await fetch(url, { method: "POST", headers: HEADERS, body: PAYLOAD });
      await response.arrayBuffer();
      count++;
    }
  };
  const posts = Array.from({ length: concurrency }, (_, index) => post(index));
  await new Promise((resolve) => setTimeout(resolve, warmUpMs));
  const [startedMs, first, before] = [performance.now(), count, process.cpuUsage()];
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  const used = process.cpuUsage(before);
  const [done, seconds] = [count - first, (performance.now() - startedMs) / 1000];
  isOver = true;
  await Promise.all(posts);
  return { perSecond: done / seconds, cpuMsEach: (used.user + used.system) / 1000 / done };
}

async function serve(): Promise<void> {
  process.once("disconnect", () => process.exit(0));
  const [order]: Order[] = await once(process, "message");
  if (order !== undefined) process.send?.(await loop(order), () => process.exit(0));
}

if (import.meta.main) await serve();
