/** A worker of BullMQ that POSTs a payload for each job; its argument is the settings as JSON. */
import { importPeer } from "./peers.ts";
import { PAYLOAD } from "./post_seed.ts";

interface Job {
  readonly data: { readonly url: string };
}
interface BullMq {
  Queue: new (name: string, options: object) => {
    obliterate(options: object): Promise<void>;
    addBulk(jobs: readonly object[]): Promise<unknown>;
    close(): Promise<void>;
  };
  Worker: new (name: string, run: (job: Job) => Promise<void>, options: object) => object;
}
interface Settings {
  readonly folder: string;
  readonly port: number;
  readonly urls: readonly string[];
  readonly jobs: number;
  readonly concurrency: number;
}

const JOBS_A_BATCH = 1000;

const settings: Settings = JSON.parse(process.argv[2] ?? "");
const { folder, port, urls, jobs, concurrency } = settings;
const { Queue, Worker } = await importPeer<BullMq>(folder, "bullmq");
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };

const queue = new Queue("deliveries", { connection });
await queue.obliterate({ force: true });
for (let added = 0; added < jobs; added += JOBS_A_BATCH) {
  await queue.addBulk(Array.from({ length: JOBS_A_BATCH }, (_, index) => ({
    name: "delivery",
    data: { url: urls[(added + index) % urls.length] },
    opts: { attempts: 4, backoff: { type: "exponential", delay: 10_000 }, removeOnComplete: true },
  })));
}
new Worker("deliveries", async ({ data }) => {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(data.url, { method: "POST", headers, body: PAYLOAD });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`answered ${response.status}`);
}, { connection, concurrency });
console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
