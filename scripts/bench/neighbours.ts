import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../src/base/id.ts";
import { createPasswordHasher } from "../../src/base/password.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { insertUser } from "../../src/store/users.ts";
import type { BenchCase, Finding, Stage } from "./bench_case.ts";
import { type BenchGatepost, startGatepost } from "./gatepost.ts";
import { itemRequest } from "./hosted.ts";
import { percentile, requestBytes } from "./http_load.ts";
import { runPaced } from "./paced_load.ts";
import { startPostReceiver } from "./post_receiver.ts";
import { medianOf } from "./post_rounds.ts";

/** Measures protected requests while the server has heavier work. */
export const NEIGHBOUR_CASES: readonly BenchCase[] = [
  { name: "p99-logins", measure: measureBesideLogins },
  { name: "p99-deliveries", measure: measureBesideDeliveries },
];

const GETS_A_SECOND = 500;
const LOGINS_A_SECOND = 100;
const ACCOUNTS = 500;
const EVENTS_A_SECOND = 100;
const SUBSCRIBERS = 20; // 2,000 deliveries a second together
const WARM_UP_MS = 1000;
const SETTLE_MS = 1500;
const TARGET = { kind: "at most", value: 5 } as const;

/** Adds accounts that share a password; returns a function that makes the login of the n-th. */
export async function addAccounts({ databasePath }: Pick<BenchGatepost, "databasePath">) {
  const password = "right for all of them";
  const phc = await createPasswordHasher(1).hash(password);
  const database = openSqliteDatabase(databasePath);
  const createdAtMs = Date.now();
  const usernames = Array.from({ length: ACCOUNTS }, (_, index) => `account${index}`);
  await database.write(usernames.map((username) =>
    insertUser({ id: newId("u", createdAtMs), username, phc, scopes: ["consumer"], createdAtMs })
  ));
  await database.close();
  return (index: number): Buffer =>
    requestBytes("POST", "/consumer/login", { "Content-Type": "application/json" },
      JSON.stringify({ username: usernames[index % ACCOUNTS], password }));
}

/** Logs in more accounts than can be checked: the status is 200, or 503 while the queue is full. */
export function runLogins(port: number, durationMs: number, next: (index: number) => Buffer) {
  return runPaced({ port, perSecond: LOGINS_A_SECOND, durationMs, statuses: [200, 503], next });
}

async function measureBesideLogins(stage: Stage): Promise<Finding[]> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  try {
    const login = await addAccounts(gatepost);
    let answered = 0;
    const finding = await besides("beside 100 logins/s", gatepost, stage, async (durationMs) => {
      const { byStatus } = await runLogins(gatepost.port, durationMs, login);
      answered += byStatus[200] ?? 0;
    });
    stage.say(`  ${answered} logins were answered 200, the rest 503`);
    return [finding];
  } finally {
    await gatepost.stop();
  }
}

async function measureBesideDeliveries(stage: Stage): Promise<Finding[]> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  const receiver = await startPostReceiver();
  try {
    for (let index = 0; index < SUBSCRIBERS; index++) {
      const endpoint = `${receiver.urls[index % receiver.urls.length]}/${index}`;
      await gatepost.post("/consumer/subscription", { event: "order.placed", endpoint });
    }
    const order = requestBytes("POST", "/orders", {
      Authorization: `Bearer ${await gatepost.appToken()}`,
      "Content-Type": "application/json",
    }, JSON.stringify({ item: "lamp", quantity: 2 }));
    let [deliveries, ms] = [0, 0];
    const what = "beside 2,000 deliveries/s";
    const finding = await besides(what, gatepost, stage, async (durationMs) => {
      const [before, startedMs] = [await receiver.count(), performance.now()];
      const load = { port: gatepost.port, perSecond: EVENTS_A_SECOND, statuses: [200] };
      await runPaced({ ...load, durationMs, next: () => order });
      deliveries += await receiver.count() - before;
      ms += performance.now() - startedMs;
    });
    stage.say(`  ${Math.round(deliveries / ms * 1000)} deliveries/s came meanwhile`);
    return [finding];
  } finally {
    await Promise.all([gatepost.stop(), receiver.close()]);
  }
}

/** Measures the p99 of protected requests beside a load and without one, in turn. */
async function besides(
  what: string,
  gatepost: BenchGatepost,
  { rounds, turnMs }: Stage,
  load: (durationMs: number) => Promise<void>,
): Promise<Finding> {
  const bytes = itemRequest(await gatepost.appToken());
  const probe = async (durationMs: number) => {
    const paced = { port: gatepost.port, perSecond: GETS_A_SECOND, durationMs, statuses: [200] };
    const { latenciesMs } = await runPaced({ ...paced, next: () => bytes });
    return latenciesMs;
  };
  const probeBeside = async (durationMs: number) => {
    const [latenciesMs] = await Promise.all([probe(durationMs), load(durationMs)]);
    return latenciesMs;
  };
  await probeBeside(WARM_UP_MS);
  const [idle, busy]: [Float64Array[], Float64Array[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    await sleep(SETTLE_MS); // earlier work ends
    idle.push(await probe(turnMs));
    busy.push(await probeBeside(turnMs));
  }
  // One p99 a round, so that a moment in which the machine stands still spoils one round only.
  const p99Of = (turns: readonly Float64Array[]) =>
    medianOf(turns, (each) => percentile(each, 0.99));
  const [idleP99, busyP99] = [p99Of(idle), p99Of(busy)];
  return {
    what: `protected GET ${what}, p99`,
    unit: "ms",
    gatepost: busyP99,
    reference: { name: "idle", value: idleP99 },
    ratio: busyP99 / idleP99,
    latencyMs: { p50: medianOf(busy, (each) => percentile(each, 0.5)), p99: busyP99 },
    target: TARGET,
  };
}
