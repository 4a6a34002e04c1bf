import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { requestBytes, runLoad } from "./http_load.ts";
import { startPostServer } from "./post_process.ts";
import { type Bench, inTurn, type Measured, medianOf } from "./post_rounds.ts";
import { copyFolder, PAYLOAD, seed, seedFolder } from "./post_seed.ts";

const SUBSCRIBERS = 10_000;
const PROBE_EVERY_MS = 5;
const FAN_OUT_LIMIT_MS = 60_000;
const CONNECTIONS = 16;
const LOAD_MS = 4000;
const WARM_UP_MS = 1500;

const MODULE = `export const dispatching = {
  method: "POST",
  path: "/orders/:event",
  public: true,
  handle({ params, body, dispatch }) {
    dispatch(params.event, body);
    return { status: 202, body: {} };
  },
};
`;

/** Measures other requests while one event goes to many, and a dispatch beside a million rows. */
export async function measureFanOut(bench: Bench): Promise<Measured[]> {
  const endpoints = bench.folder("endpoints");
  mkdirSync(endpoints);
  writeFileSync(join(endpoints, "dispatching.mjs"), MODULE);
  const env = { GATEPOST_ENDPOINTS: endpoints };
  return [...await measureWaits(bench, env), ...await measureDispatch(bench, env)];
}

async function measureWaits(
  { receiver, folder, rounds }: Bench,
  env: Record<string, string>,
): Promise<Measured[]> {
  const path = await seedFolder(folder("subscribers"), [{
    event: "to-many",
    endpoints: Array.from(
      { length: SUBSCRIBERS },
      (_, index) => `${receiver.urls[index % receiver.urls.length]}/${index}`,
    ),
    deliveries: 0,
  }]);
  const turns = join(path, "turns");
  const flags = ["--import", import.meta.resolve("./post_turns.ts")];
  const server = await startPostServer(path, { ...env, BENCH_TURNS: turns }, flags);
  try {
    const idle = await probe(server.port, new Promise((resolve) => setTimeout(resolve, 1000)));
    server.signal("SIGUSR2");
    const busy: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      const expected = await receiver.count() + SUBSCRIBERS;
      const sent = await fetch(`${server.url}/orders/to-many`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: PAYLOAD,
      });
      if (sent.status !== 202) throw new Error(`The dispatch was answered ${sent.status}`);
      busy.push(await probe(server.port, receiver.waitFor(expected, FAN_OUT_LIMIT_MS)));
    }
    await server.stop("SIGTERM");
    const longest = Math.max(...busy.flat());
    const longestTurn = Number(readFileSync(turns, "utf8"));
    const of = (share: number, waits: number[]) => waits[Math.floor(waits.length * share)] ?? NaN;
    return [
      { what: "a request beside nothing: p99 of its wait", value: of(0.99, idle), unit: "ms" },
      {
        what: "a request beside a fan-out to 10,000, until all have it: p99",
        value: medianOf(busy, (waits) => of(0.99, waits)),
        unit: "ms",
      },
      {
        what: "  the longest",
        value: longest,
        unit: "ms",
        promise: { text: "≤ 50", isKept: longest <= 50 },
      },
      {
        what: "  the longest turn of the server's loop, in CPU time",
        value: longestTurn,
        unit: "ms",
        promise: { text: "≤ 50", isKept: longestTurn <= 50 },
      },
    ];
  } finally {
    await server.stop();
  }
}

/** Requests the health every few milliseconds until the end; returns the waits, sorted. */
async function probe(port: number, end: Promise<unknown>): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const waits: number[] = [];
  let failure: Error | undefined;
  const timer = setInterval(() => {
    const askedMs = performance.now();
    get({ agent, port, host: "127.0.0.1", path: "/system/health" }, (response) => {
      response.resume().once("end", () => waits.push(performance.now() - askedMs));
    }).once("error", (error) => failure = error);
  }, PROBE_EVERY_MS);
  try {
    await end;
  } finally {
    clearInterval(timer);
    agent.destroy();
  }
  if (failure !== undefined && waits.length === 0) throw failure;
  return waits.sort((one, other) => one - other);
}

async function measureDispatch(
  { folder, rounds }: Bench,
  env: Record<string, string>,
): Promise<Measured[]> {
  const few = await seedFolder(folder("few"), []);
  const many = copyFolder(few, folder("many"));
  // These deliveries have finished: they are neither pending nor old enough to be purged.
  seed(many, [{
    event: "order.created",
    endpoints: ["http://127.0.0.1:9/"],
    deliveries: 1_000_000,
    status: "delivered",
  }]);
  let round = 0;
  const results = await inTurn(rounds, ["few", "many"], async (name) => {
    const copy = copyFolder(name === "many" ? many : few, folder(`dispatch-${round++}`));
    const server = await startPostServer(copy, env);
    const bytes = requestBytes("POST", "/orders/nobody.subscribes", {
      "Content-Type": "application/json",
    }, PAYLOAD);
    const load = (durationMs: number) =>
      runLoad({
        port: server.port,
        connections: CONNECTIONS,
        durationMs,
        next: () => bytes,
        status: 202,
      });
    try {
      await load(WARM_UP_MS);
      const before = server.cpu();
      const { count, seconds } = await load(LOAD_MS);
      return {
        perSecond: count / seconds,
        cpuMsEach: (server.cpu().totalMs - before.totalMs) / count,
      };
    } finally {
      await server.stop();
    }
  });
  const cpu = (name: "few" | "many") => medianOf(results[name], ({ cpuMsEach }) => cpuMsEach);
  const cost = cpu("many") / cpu("few");
  const beside = { few: "an empty database", many: "a million events and deliveries" };
  return [
    ...(["few", "many"] as const).flatMap((name): Measured[] => [
      {
        what: `dispatches, ${beside[name]}`,
        value: medianOf(results[name], ({ perSecond }) => perSecond),
        unit: "/s",
      },
      { what: "  CPU each", value: cpu(name), unit: "ms" },
    ]),
    {
      what: "  of the empty one's",
      value: cost,
      unit: "×",
      promise: { text: "≤ 1.2", isKept: cost <= 1.2 },
    },
  ];
}
