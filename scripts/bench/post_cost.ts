import { runBareLoop } from "./post_bare_loop.ts";
import { startPostServer } from "./post_process.ts";
import { type Bench, inTurn, type Measured, measureDrain, medianOf } from "./post_rounds.ts";
import { copyFolder, seedFolder } from "./post_seed.ts";

const SUBSCRIPTIONS = 100;
const BACKLOG = 60_000;
/** The default of GATEPOST_CALLBACK_CONCURRENCY. */
const CONCURRENCY = 64;
const WARM_UP = 4000;
const WARM_UP_MS = 2000;
const WINDOW_MS = 5000;

interface Round {
  readonly perSecond: number;
  readonly cpuMsEach: number;
  readonly mainThreadMsEach?: number;
}

/** Compares a delivery with a bare loop of `fetch`, which stores, guards and signs nothing. */
export async function measureCost(bench: Bench): Promise<Measured[]> {
  const { receiver, folder, rounds, profiles } = bench;
  const urls = Array.from(
    { length: SUBSCRIPTIONS },
    (_, index) => `${receiver.urls[index % receiver.urls.length]}/${index}`,
  );
  const seeded = await seedFolder(folder("cost"), [
    { event: "order.created", endpoints: urls, deliveries: BACKLOG / SUBSCRIPTIONS },
  ]);
  const flags = profiles === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profiles}`];
  let round = 0;
  const names = ["fetch alone", "gatepost"] as const;
  const results = await inTurn(rounds, names, async (name): Promise<Round> => {
    if (name === "fetch alone") {
      const times = { warmUpMs: WARM_UP_MS, durationMs: WINDOW_MS };
      return runBareLoop({ urls, concurrency: CONCURRENCY, ...times });
    }
    const first = await receiver.count();
    const server = await startPostServer(copyFolder(seeded, folder(`cost-${round++}`)), {}, flags);
    try {
      await receiver.waitFor(first + WARM_UP, 4 * WARM_UP_MS);
      return await measureDrain(server, receiver, WINDOW_MS);
    } finally {
      await server.stop(profiles === undefined ? "SIGKILL" : "SIGTERM");
    }
  });
  const rate = (name: keyof typeof results) => medianOf(results[name], (each) => each.perSecond);
  const cpu = (name: keyof typeof results) => medianOf(results[name], (each) => each.cpuMsEach);
  const share = 100 * rate("gatepost") / rate("fetch alone");
  const cost = cpu("gatepost") / cpu("fetch alone");
  return [
    { what: "a bare loop of fetch, 64 at once", value: rate("fetch alone"), unit: "POSTs/s" },
    { what: "  CPU each", value: cpu("fetch alone"), unit: "ms" },
    { what: "deliveries, 64 at once", value: rate("gatepost"), unit: "deliveries/s" },
    { what: "  CPU each", value: cpu("gatepost"), unit: "ms" },
    {
      what: "    of that in the main thread",
      value: medianOf(results["gatepost"], (each) => each.mainThreadMsEach ?? NaN),
      unit: "ms",
    },
    {
      what: "  rate of fetch's",
      value: share,
      unit: "%",
      promise: { text: "≥ 85", isKept: share >= 85 },
    },
    {
      what: "  CPU each of fetch's",
      value: cost,
      unit: "×",
      promise: { text: "≤ 1.25", isKept: cost <= 1.25 },
    },
  ];
}
