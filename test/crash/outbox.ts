/**
 * Kills the server around each commit of the shop's outbox (scripts/demo/shop), and compares what
 * came with what the shop's own database holds:
 *
 *   node test/crash/outbox.ts --kills 60 [--seed 7]
 *
 * Exits 1 when an acknowledged order is gone, or an order has no event or two.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { readOptions } from "../../scripts/read_options.ts";
import { queryFile } from "../helpers/engine.ts";
import { PASSWORD } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { createRandom, type Random } from "../helpers/random.ts";
import { bearer } from "../helpers/requests.ts";
import type { KillPoint } from "./points.ts";
import { pairKey, type Recorder, startRecorder } from "./recorder.ts";
import { crashEnv, DATABASE, hasEnded, startVictim, until } from "./victim.ts";

const SHOP = join(import.meta.dirname, "../../scripts/demo/shop");
const SCOPES = ["consumer", "shop:order", "shop:staff"];
/** The events of orders: the path and the name, and the orders that must have one. */
const ORDER_EVENTS = [
  ["/placed", "shop.order.placed", "SELECT reference FROM orders"],
  ["/cancelled", "shop.order.cancelled", "SELECT reference FROM orders WHERE status = 'cancelled'"],
] as const;
const PUBLISHERS = 3;
/** How long the run of a cronjob that was killed keeps others from running. */
const LEASE_MS = 30_000;

type CommitPoint = KillPoint & { kind: "commit" };

const around = (what: string, text: string): [string, CommitPoint][] => [
  [`before ${what}`, { kind: "commit", when: "before", text }],
  [`after ${what}`, { kind: "commit", when: "after", text }],
];
const POINTS = new Map([
  ...around("the order's commit", "INSERT INTO outbox"),
  ...around("the flush", "INSERT INTO events"),
  ...around("the delete", "DELETE FROM outbox"),
]);

/** What became of orders, by their numbers. */
interface Orders {
  /** Those whose request had a 200 or 201. */
  readonly acknowledged: Set<number>;
  /** Those whose request had no response, which the customer sends again. */
  readonly unanswered: Set<number>;
  last: number;
}

/** Kills servers, as many as given, lets the last one finish, and counts. */
export async function runOutboxMatrix({ kills, random, report }: {
  readonly kills: number;
  readonly random: Random;
  readonly report?: (line: string) => void;
}) {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-crash-"));
  const recorder = await startRecorder(({ reference }) => Number(reference));
  const orders: Orders = { acknowledged: new Set(), unanswered: new Set(), last: 0 };
  const names = [...POINTS.keys()];
  try {
    const token = await prepare(folder, recorder.url);
    for (let index = 0; index < kills; index++) {
      const name = names[index % names.length] ?? "";
      await runUntilKilled(POINTS.get(name), { folder, random, orders, token });
      report?.(`killed ${name}, ${orders.acknowledged.size} orders`);
    }
    await finish(folder);
    return count(folder, orders, recorder);
  } finally {
    await recorder.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function start(folder: string, env: Readonly<Record<string, string>> = {}) {
  return startVictim(folder, {
    GATEPOST_ENDPOINTS: SHOP,
    GATEPOST_BASE_URL: "http://127.0.0.1:8080", // tokens are of one issuer, whatever the port
    SHOP_DATABASE: join(folder, "shop.db"),
    ...env,
  });
}

/** Makes a customer who subscribes and a shop that does not sell out; returns the token. */
async function prepare(folder: string, receiverUrl: string): Promise<string> {
  const server = await start(folder);
  const api = createClient(server.url);
  const call = async (path: string, body: object, token = "") => {
    const response = await api.postJson(path, body, token === "" ? {} : bearer(token));
    if (response.status > 201) throw new Error(response.text);
    const members: Readonly<Record<string, unknown>> = JSON.parse(response.text);
    return members;
  };
  const logIn = async (username: string) =>
    String((await call("/consumer/login", { username, password: PASSWORD }))["token"]);
  const user = { username: "customer", password: PASSWORD, scopes: SCOPES };
  await call("/backend/user", user, await logIn("admin"));
  const token = await logIn("customer");
  for (const [path, event] of ORDER_EVENTS) {
    await call("/consumer/subscription", { event, endpoint: receiverUrl + path }, token);
  }
  await api.get("/shop/products"); // makes the shop's database
  await server.stop();
  const shop = new DatabaseSync(join(folder, "shop.db"));
  shop.exec("UPDATE products SET stock = 1000000000");
  shop.close();
  return token;
}

/** Starts the server, orders without a pause, and returns once it has killed itself. */
async function runUntilKilled(point: CommitPoint | undefined, stage: {
  readonly folder: string;
  readonly random: Random;
  readonly orders: Orders;
  readonly token: string;
}): Promise<void> {
  const { folder, random, orders, token } = stage;
  const server = await start(folder, point ? crashEnv(point, 1 + random.below(8)) : {});
  const stop = new AbortController();
  const customers = Array.from({ length: PUBLISHERS }, async () => {
    while (!stop.signal.aborted && await placeOrder(server.url, token, orders)) {
      await sleep(random.below(6));
    }
  });
  const dead = until(() => hasEnded(server.pid), `it was not killed: ${JSON.stringify(point)}`)
    .finally(() => stop.abort());
  await Promise.all([dead, ...customers]).finally(() => server.kill());
}

/** Places an order, and cancels each third one; false where the server is gone. */
async function placeOrder(url: string, token: string, orders: Orders): Promise<boolean> {
  const [again] = orders.unanswered;
  const n = again ?? ++orders.last;
  orders.unanswered.delete(n);
  const id = await post(`${url}/shop/orders`, token, { reference: String(n), sku: "lamp" });
  if (id === undefined) {
    orders.unanswered.add(n);
    return false;
  }
  orders.acknowledged.add(n);
  return n % 3 > 0 || await post(`${url}/shop/orders/${id}/cancel`, token) !== undefined;
}

/** The id of the order in the response; undefined without a response. Throws for a refusal. */
async function post(url: string, token: string, body: object = {}): Promise<string | undefined> {
  const headers = { ...bearer(token), "content-type": "application/json" };
  const sent = fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await sent.then((response) => response.text()).catch(() => undefined);
  if (text === undefined) return undefined; // the server has died
  const { id }: { readonly id?: string } = JSON.parse(text);
  if (id === undefined) throw new Error(text);
  return id;
}

/** Lets the server dispatch and deliver all that is left. */
async function finish(folder: string): Promise<void> {
  const server = await start(folder);
  const isLeft = `SELECT 1 FROM events WHERE status = 'pending'
    UNION ALL SELECT 1 FROM deliveries WHERE status = 'pending' LIMIT 1`;
  await until(
    () =>
      queryFile(join(folder, "shop.db"), "SELECT 1 FROM outbox LIMIT 1").length === 0 &&
      queryFile(join(folder, DATABASE), isLeft).length === 0,
    "events or deliveries are left over",
    LEASE_MS + 15_000,
  );
  const code = await server.stop();
  if (code !== 0) throw new Error(`the last server's exit code is ${code}`);
}

function count(folder: string, { acknowledged }: Orders, { counts, pairs, torn }: Recorder) {
  const numbersOf = (sql: string) =>
    queryFile(join(folder, "shop.db"), sql).map(({ reference }) => Number(reference));
  const wanted = ORDER_EVENTS.map(([path, , sql]) => numbersOf(sql).map((n) => pairKey(path, n)));
  const known = new Set(wanted.flat());
  const [placed = []] = wanted;
  return {
    orders: placed.length,
    cancelled: known.size - placed.length,
    acknowledged: acknowledged.size,
    /** Orders that were acknowledged and are not in the shop's database. */
    forgotten: [...acknowledged].filter((n) => !known.has(pairKey("/placed", n))).length,
    /** Orders of which no event came, and of which more than one did. */
    lost: [...known].filter((key) => !pairs.has(key)).length,
    doubled: torn.size,
    /** Events of orders that the shop does not know. */
    invented: [...pairs.keys()].filter((key) => !known.has(key)).length,
    received: [...counts.values()].reduce((sum, times) => sum + times, 0),
  };
}

/** What is wrong with the figures, a line each. */
export function findOutboxFaults(figures: Awaited<ReturnType<typeof runOutboxMatrix>>): string[] {
  return (["forgotten", "lost", "doubled", "invented"] as const)
    .filter((name) => figures[name] > 0)
    .map((name) => `${name}: ${figures[name]} in place of 0`);
}

async function main(): Promise<void> {
  const { values } = readOptions({
    options: {
      kills: { type: "string", default: "60" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    },
  });
  console.log(`seed ${values.seed}`);
  const figures = await runOutboxMatrix({
    kills: Number(values.kills),
    random: createRandom(Number(values.seed)),
    report: (line) => console.log(line),
  });
  console.log(JSON.stringify(figures, undefined, 2));
  const faults = findOutboxFaults(figures);
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

if (process.argv[1] === import.meta.filename) await main();
