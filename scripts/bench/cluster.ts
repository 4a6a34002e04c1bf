import { runRqlited } from "../../test/helpers/rqlited.ts";
import type { BenchCase, Finding, Stage } from "./bench_case.ts";
import { measureDispatchToCallback } from "./callbacks.ts";
import { comparison, type Contest, loadSide, type Side } from "./compare.ts";
import { type BenchGatepost, startGatepost } from "./gatepost.ts";
import { percentile, requestBytes, runLoad } from "./http_load.ts";
import { type PostReceiver, startPostReceiver } from "./post_receiver.ts";
import { cpuMsOf } from "./processes.ts";
import { tokenRequest } from "./tokens.ts";

/** Compares a Gatepost node on three rqlited with one on a file, all on this machine. */
export const CLUSTER_CASES: readonly BenchCase[] = [
  comparison("cluster-tokens", "client_credentials on a cluster, 256 connections", (stage) =>
    startContest(stage, obtainTokens)),
  comparison("cluster-events", "hosted POST with one event on a cluster", (stage) =>
    startContest(stage, dispatchEvents)),
  comparison("cluster-deliveries", "deliveries on a cluster, 20 subscribers", startDeliveries),
  { name: "cluster-latency", measure: measureLatency },
];

const CONNECTIONS = 256;
const SUBSCRIBERS = 20;
/** More than are delivered in a turn. */
const DELIVERIES_A_SECOND = 4_000;
const DELIVERED_MS = 60_000;
const EVENTS_A_SECOND = 50;
const ORDER = JSON.stringify({ item: "lamp", quantity: 2 });

/** A server with all that it needs. */
interface Gatepost {
  readonly name: string;
  readonly gatepost: BenchGatepost;
  /** CPU time of Gatepost and of its rqlited. */
  cpuMs(): number;
  stop(): Promise<void>;
}

async function startOnFile(stage: Stage): Promise<Gatepost> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  return { name: "one SQLite file", gatepost, cpuMs: gatepost.cpuMs, stop: gatepost.stop };
}

async function startOnCluster(stage: Stage): Promise<Gatepost> {
  const rqlite = await runRqlited({ nodes: 3 });
  const env = { GATEPOST_DATABASE: rqlite.address };
  const gatepost = await startGatepost(stage.newFolder(), { env, nodeFlags: stage.nodeFlags })
    .catch(async (error: unknown) => {
      await rqlite.stop();
      throw error;
    });
  return {
    name: "Gatepost on three rqlited",
    gatepost,
    cpuMs: () => rqlite.nodes.reduce((sum, { pid }) => sum + cpuMsOf(pid), gatepost.cpuMs()),
    async stop() {
      await gatepost.stop();
      await rqlite.stop();
    },
  };
}

/** Starts both servers, one after the other, and makes a side of each by `sideOf`. */
async function startContest(
  stage: Stage,
  sideOf: (gatepost: Gatepost) => Promise<Side>,
): Promise<Contest> {
  const [cluster, file] = [await startOnCluster(stage), await startOnFile(stage)];
  return {
    gatepost: await sideOf(cluster),
    references: [{ side: await sideOf(file) }],
    stop: async () => void await Promise.all([cluster.stop(), file.stop()]),
  };
}

async function obtainTokens({ name, gatepost, cpuMs }: Gatepost): Promise<Side> {
  const fields = { grant_type: "client_credentials", scope: "orders" };
  const bytes = tokenRequest(fields, gatepost.app.basic);
  return loadSide(name, { port: gatepost.port, cpuMs }, CONNECTIONS, () => bytes);
}

async function dispatchEvents({ name, gatepost, cpuMs }: Gatepost): Promise<Side> {
  const bytes = await orderRequest(gatepost);
  return loadSide(name, { port: gatepost.port, cpuMs }, CONNECTIONS, () => bytes);
}

async function orderRequest(gatepost: BenchGatepost): Promise<Buffer> {
  return requestBytes("POST", "/orders", {
    Authorization: `Bearer ${await gatepost.appToken()}`,
    "Content-Type": "application/json",
  }, ORDER);
}

async function startDeliveries(stage: Stage): Promise<Contest> {
  const receivers: PostReceiver[] = [];
  const contest = await startContest(stage, async ({ name, gatepost, cpuMs }) => {
    const receiver = await startPostReceiver();
    receivers.push(receiver);
    for (let index = 0; index < SUBSCRIBERS; index++) {
      const endpoint = `${receiver.urls[index % receiver.urls.length]}/${index}`;
      await gatepost.post("/consumer/subscription", { event: "order.placed", endpoint });
    }
    const bytes = await orderRequest(gatepost);
    let expected = 0;
    return {
      name,
      cpuMs,
      /** Adds to the backlog. */
      async prepare(turnMs) {
        const count = Math.ceil(DELIVERIES_A_SECOND * turnMs / 1000 / SUBSCRIBERS);
        await postEach(gatepost.port, Array.from({ length: count }, () => bytes));
        expected += count * SUBSCRIBERS;
      },
      /** Runs until all is delivered, since the rest would take from the turn of the other side. */
      async run() {
        const [startedMs, first] = [performance.now(), await receiver.count()];
        await receiver.waitFor(expected, DELIVERED_MS);
        const seconds = (performance.now() - startedMs) / 1000;
        return { count: expected - first, seconds, latenciesMs: new Float64Array() };
      },
    };
  });
  const stop = async () => {
    await contest.stop();
    await Promise.all(receivers.map((receiver) => receiver.close()));
  };
  return { ...contest, stop };
}

/** Sends each request once. */
async function postEach(port: number, requests: Buffer[]): Promise<void> {
  const next = () => requests.pop();
  await runLoad({ port, connections: CONNECTIONS, status: 200, durationMs: DELIVERED_MS, next });
}

async function measureLatency(stage: Stage): Promise<Finding[]> {
  const sides = [await startOnCluster(stage), await startOnFile(stage)];
  const medians: number[] = [];
  try {
    for (const { gatepost } of sides) {
      const latencies = await measureDispatchToCallback(gatepost, EVENTS_A_SECOND, stage);
      medians.push(percentile(latencies, 0.5));
    }
  } finally {
    await Promise.all(sides.map((side) => side.stop()));
  }
  const [cluster = NaN, file = NaN] = medians;
  return [{
    what: `dispatch to callback on a cluster, ${EVENTS_A_SECOND} events/s, p50`,
    unit: "ms",
    gatepost: cluster,
    reference: { name: "one SQLite file", value: file },
    ratio: cluster / file,
  }];
}
