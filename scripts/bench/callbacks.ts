import type { BenchCase, Finding, Stage } from "./bench_case.ts";
import { type BenchGatepost, startGatepost, startServer } from "./gatepost.ts";
import { itemRequest } from "./hosted.ts";
import { percentile, requestBytes } from "./http_load.ts";
import { runPaced } from "./paced_load.ts";
import { startBullMq } from "./peer_redis.ts";
import { runBareLoop } from "./post_bare_loop.ts";
import { type PostReceiver, startPostReceiver } from "./post_receiver.ts";
import { inTurn, medianOf, sleep } from "./post_rounds.ts";
import { copyFolder, seedFolder } from "./post_seed.ts";
import { startProcess } from "./processes.ts";
import { LIMIT_SERVER } from "./tokens.ts";

/** Measures events on their way to their subscribers. */
export const CALLBACK_CASES: readonly BenchCase[] = [
  { name: "deliveries", measure: measureDeliveries },
  { name: "latency", measure: measureLatency },
  { name: "fan-out", measure: measureFanOut },
];

const SUBSCRIPTIONS = 100;
const BACKLOG = 120_000; // more than the measurement sends
const CONCURRENCY = 64; // the default of GATEPOST_CALLBACK_CONCURRENCY
const WARM_UP_MS = 1500;
/** Until V8 has optimized all code of an exchange, which then allocates less. */
const DELIVERY_WARM_UP_MS = 6000;
const WAIT_MS = 20_000;
const EVENTS_A_SECOND = 200;
const FAN_OUT = 10_000;
const FAN_OUT_MS = 4000;

interface Drained {
  readonly perSecond: number;
  readonly cpuMsEach: number;
}

async function measureDeliveries(stage: Stage): Promise<Finding[]> {
  const receiver = await startPostReceiver();
  const urls = Array.from({ length: SUBSCRIPTIONS }, (_, index) =>
    `${receiver.urls[index % receiver.urls.length]}/${index}`);
  const queue = await startBullMq(stage);
  try {
    const seeded = await seedFolder(stage.newFolder(), [
      { event: "order.created", endpoints: urls, deliveries: BACKLOG / SUBSCRIPTIONS },
    ]);
    const names = ["gatepost", "fetch", ...queue ? ["bullmq" as const] : []] as const;
    const results = await inTurn(stage.rounds, names, async (name): Promise<Drained> => {
      if (name === "fetch") {
        const times = { warmUpMs: DELIVERY_WARM_UP_MS, durationMs: stage.turnMs };
        return runBareLoop({ urls, concurrency: CONCURRENCY, ...times });
      }
      const first = await receiver.count();
      const server = name === "bullmq" && queue
        ? await queue.startWorker(urls, BACKLOG, CONCURRENCY)
        : await startServer(copyFolder(seeded, stage.newFolder()), { nodeFlags: stage.nodeFlags });
      try {
        await receiver.waitFor(first + 1, WAIT_MS);
        await sleep(DELIVERY_WARM_UP_MS);
        return await drain(server.cpuMs, receiver, stage.turnMs);
      } finally {
        await server.stop();
      }
    });
    const rate = (name: typeof names[number]) => medianOf(results[name], (each) => each.perSecond);
    const cpu = (name: typeof names[number]) =>
      medianOf(results[name], ({ cpuMsEach }) => cpuMsEach) * 1000;
    const against = (name: "fetch" | "bullmq", label: string, least: number): Finding => ({
      what: "deliveries",
      unit: "/s",
      gatepost: rate("gatepost"),
      reference: { name: label, value: rate(name) },
      ratio: rate("gatepost") / rate(name),
      cpuMicros: { gatepost: cpu("gatepost"), reference: cpu(name) },
      target: { kind: "at least", value: least },
    });
    return [
      against("fetch", "bare fetch loop", 0.85),
      {
        what: "CPU of a delivery",
        unit: "µs",
        gatepost: cpu("gatepost"),
        reference: { name: "bare fetch loop", value: cpu("fetch") },
        ratio: cpu("gatepost") / cpu("fetch"),
        target: { kind: "at most", value: 1.25 },
      },
      ...queue ? [against("bullmq", "BullMQ on Redis", 2)] : [],
    ];
  } finally {
    await Promise.all([receiver.close(), queue?.stop()]);
  }
}

async function drain(
  cpuMs: () => number,
  receiver: PostReceiver,
  durationMs: number,
): Promise<Drained> {
  const [startedMs, first, before] = [performance.now(), await receiver.count(), cpuMs()];
  await sleep(durationMs);
  const count = await receiver.count() - first;
  const seconds = (performance.now() - startedMs) / 1000;
  return { perSecond: count / seconds, cpuMsEach: (cpuMs() - before) / count };
}

async function measureLatency(stage: Stage): Promise<Finding[]> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  try {
    const latencies = await measureDispatchToCallback(gatepost, EVENTS_A_SECOND, stage);
    return [[0.5, 5], [0.99, 25]].map(([share = 0, value = 0]) => ({
      what: `dispatch to callback, 200 events/s, p${share * 100}`,
      unit: "ms",
      gatepost: percentile(latencies, share),
      target: { kind: "at most", value },
    }));
  } finally {
    await gatepost.stop();
  }
}

/** Returns the times from `dispatch` in a handler to the callback's request, in ms, sorted. */
export async function measureDispatchToCallback(
  gatepost: BenchGatepost,
  perSecond: number,
  { turnMs, rounds }: Stage,
): Promise<Float64Array> {
  const receiver = await startProcess([LIMIT_SERVER, "receive"]);
  try {
    const endpoint = `${receiver.url}/`;
    await gatepost.post("/consumer/subscription", { event: "order.timed", endpoint });
    const bytes = requestBytes("POST", "/timed-orders", {
      Authorization: `Bearer ${await gatepost.appToken()}`,
    });
    const dispatchFor = async (durationMs: number): Promise<Float64Array> => {
      const load = { port: gatepost.port, perSecond, statuses: [204] };
      await runPaced({ ...load, durationMs, next: () => bytes });
      await sleep(500); // callbacks under way arrive
      const all: number[] = JSON.parse(await (await fetch(receiver.url)).text());
      return Float64Array.from(all).sort();
    };
    await dispatchFor(WARM_UP_MS);
    return await dispatchFor(turnMs * rounds);
  } finally {
    await receiver.stop();
  }
}

/** Measures how long other requests wait while one event goes to very many subscriptions. */
async function measureFanOut(stage: Stage): Promise<Finding[]> {
  const receiver = await startPostReceiver();
  const endpoints = Array.from({ length: FAN_OUT }, (_, index) =>
    `${receiver.urls[index % receiver.urls.length]}/${index}`);
  const seeded = [{ event: "order.placed", endpoints, deliveries: 0 }];
  const folder = await seedFolder(stage.newFolder(), seeded);
  const gatepost = await startGatepost(folder, { nodeFlags: stage.nodeFlags });
  try {
    const token = await gatepost.appToken();
    const bytes = itemRequest(token);
    const load = { port: gatepost.port, perSecond: EVENTS_A_SECOND, statuses: [200] };
    const probe = { ...load, next: () => bytes };
    await runPaced({ ...probe, durationMs: WARM_UP_MS });
    const before = await receiver.count();
    const [{ latenciesMs }] = await Promise.all([
      runPaced({ ...probe, durationMs: FAN_OUT_MS }),
      gatepost.post("/orders", { item: "lamp" }, token),
    ]);
    stage.say(`  ${await receiver.count() - before} of ${FAN_OUT} callbacks came meanwhile`);
    return [{
      what: "one event to 10,000 subscriptions: longest wait of others",
      unit: "ms",
      gatepost: latenciesMs.at(-1) ?? NaN,
      latencyMs: { p50: percentile(latenciesMs, 0.5), p99: percentile(latenciesMs, 0.99) },
      target: { kind: "at most", value: 50 },
    }];
  } finally {
    await Promise.all([gatepost.stop(), receiver.close()]);
  }
}
