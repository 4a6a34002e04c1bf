import { type PostServer, startPostServer } from "./post_process.ts";
import {
  type Bench,
  type Drain,
  drainOf,
  inTurn,
  type Measured,
  measureDrain,
  medianOf,
} from "./post_rounds.ts";
import { copyFolder, seed, seedFolder, seedMore } from "./post_seed.ts";

const SUBSCRIPTIONS = 100;
const MILLION = 1_000_000;
const EVENT = "order.created";
const WARM_UP = 3000;
const DRAIN_MS = 5000;
const SMALL = 1000;
const SMALL_BATCHES = 8;
const BATCH_LIMIT_MS = 10_000;

interface Round {
  readonly readyMs: number;
  readonly peakMiB: number;
  readonly drain: Drain;
}

/** Compares the cost of a delivery at a million and at a thousand pending ones. */
export async function measureBacklog(bench: Bench): Promise<Measured[]> {
  const { receiver, folder, rounds } = bench;
  const endpoints = Array.from(
    { length: SUBSCRIPTIONS },
    (_, index) => `${receiver.urls[index % receiver.urls.length]}/${index}`,
  );
  const million = await seedFolder(folder("million"), [
    { event: EVENT, endpoints, deliveries: MILLION / SUBSCRIPTIONS },
  ]);
  const empty = await seedFolder(folder("empty"), []);
  let round = 0;
  const results = await inTurn(rounds, ["thousand", "million"], async (name): Promise<Round> => {
    const copy = copyFolder(name === "million" ? million : empty, folder(`backlog-${round++}`));
    const [subscriptions = []] = name === "million"
      ? []
      : seed(copy, [{ event: EVENT, endpoints, deliveries: SMALL / SUBSCRIPTIONS }]);
    const first = await receiver.count();
    const server = await startPostServer(copy);
    try {
      const { readyMs } = server;
      const drain = name === "million"
        ? await drainMillion(server, bench, first)
        : await drainThousands(server, bench, first, () =>
          seedMore(copy, { subscriptions, event: EVENT, deliveries: SMALL / SUBSCRIPTIONS }));
      return { readyMs, drain, peakMiB: server.peakMiB() };
    } finally {
      await server.stop();
    }
  });
  const of = (name: "thousand" | "million", read: (round: Round) => number) =>
    medianOf(results[name], read);
  const share = 100 * of("million", ({ drain }) => drain.perSecond) /
    of("thousand", ({ drain }) => drain.perSecond);
  const cpu = of("million", ({ drain }) => drain.cpuMsEach) /
    of("thousand", ({ drain }) => drain.cpuMsEach);
  const lines = (["thousand", "million"] as const).flatMap((name): Measured[] => {
    const isMillion = name === "million";
    const readyMs = of(name, (each) => each.readyMs);
    const peakMiB = Math.max(...results[name].map((each) => each.peakMiB));
    const promise = (text: string, isKept: boolean) =>
      isMillion ? { promise: { text, isKept } } : {};
    return [
      {
        what: `a ${name} pending: start to ready`,
        value: readyMs,
        unit: "ms",
        ...promise("< 1000", readyMs < 1000),
      },
      {
        what: "  peak of resident memory",
        value: peakMiB,
        unit: "MiB",
        ...promise("< 200", peakMiB < 200),
      },
      { what: "  drained", value: of(name, ({ drain }) => drain.perSecond), unit: "deliveries/s" },
      { what: "  CPU each", value: of(name, ({ drain }) => drain.cpuMsEach), unit: "ms" },
    ];
  });
  return [
    ...lines,
    {
      what: "  drain rate of a thousand's",
      value: share,
      unit: "%",
      promise: { text: "≥ 90", isKept: share >= 90 },
    },
    { what: "  CPU each of a thousand's", value: cpu, unit: "×" },
  ];
}

async function drainMillion(
  server: PostServer,
  { receiver }: Bench,
  first: number,
): Promise<Drain> {
  await receiver.waitFor(first + WARM_UP, BATCH_LIMIT_MS);
  return measureDrain(server, receiver, DRAIN_MS);
}

/** Adds a thousand each time the last thousand is drained; the time in between is not measured. */
async function drainThousands(
  server: PostServer,
  { receiver }: Bench,
  first: number,
  addThousand: () => void,
): Promise<Drain> {
  let drained = first + SMALL;
  await receiver.waitFor(drained, BATCH_LIMIT_MS);
  while (drained < first + WARM_UP) {
    addThousand();
    drained += SMALL;
    await receiver.waitFor(drained, BATCH_LIMIT_MS);
  }
  let ms = 0;
  const before = server.cpu();
  for (let batch = 0; batch < SMALL_BATCHES; batch++) {
    addThousand();
    await receiver.waitFor(drained + SMALL, BATCH_LIMIT_MS);
    const begun = await receiver.timeOf(drained + 1) ?? NaN;
    const ended = await receiver.timeOf(drained + SMALL) ?? NaN;
    ms += ended - begun;
    drained += SMALL;
  }
  return drainOf(SMALL * SMALL_BATCHES, ms, before, server.cpu());
}
