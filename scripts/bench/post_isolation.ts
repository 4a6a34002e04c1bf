import { startPostServer } from "./post_process.ts";
import { type Bench, inTurn, type Measured, measureDrain, medianOf, sleep } from "./post_rounds.ts";
import { activate, copyFolder, type SeedGroup, seedFolder } from "./post_seed.ts";

/** More than the healthy subscription can take in a round, so that it never waits for work. */
const HEALTHY_BACKLOG = 80_000;
const HUNG_BACKLOG = 100_000;
const HANGING = 100;
/** The timeout of an attempt and a little more: by then the hanging subscriptions are failing. */
const SETTLED_MS = 11_500;
const WARM_UP_MS = 2000;
const WINDOW_MS = 5000;
const SURPRISED_MS = 10_000;

type Neighbours = "none" | "one with 100,000 pending" | "100 with 1,000 each";

/** Measures a healthy subscription beside others that never respond. */
export async function measureIsolation({ receiver, folder, rounds }: Bench): Promise<Measured[]> {
  const hanging = (count: number, deliveries: number): SeedGroup => ({
    event: "hung",
    endpoints: Array.from({ length: count }, (_, index) => `${receiver.hangingUrl}/${index}`),
    deliveries,
    paused: true,
  });
  const beside: Record<Neighbours, readonly SeedGroup[]> = {
    none: [],
    "one with 100,000 pending": [hanging(1, HUNG_BACKLOG)],
    "100 with 1,000 each": [hanging(HANGING, HUNG_BACKLOG / HANGING)],
  };
  const endpoints = [`${receiver.urls[0]}/`];
  const healthy = { event: "healthy", endpoints, deliveries: HEALTHY_BACKLOG };
  const names = Object.keys(beside) as Neighbours[];
  const seeded = new Map<Neighbours, string>();
  for (const name of names) {
    const groups = [...beside[name], healthy];
    seeded.set(name, await seedFolder(folder(`isolation-${names.indexOf(name)}`), groups));
  }
  let round = 0;
  const results = await inTurn(rounds, names, async (name) => {
    const copy = copyFolder(seeded.get(name) ?? "", folder(`isolation-round-${round++}`));
    const server = await startPostServer(copy);
    try {
      await sleep(WARM_UP_MS);
      activate(copy, "hung");
      const surprised = await measureDrain(server, receiver, SURPRISED_MS);
      await sleep(SETTLED_MS - SURPRISED_MS);
      return { surprised, settled: await measureDrain(server, receiver, WINDOW_MS) };
    } finally {
      await server.stop();
    }
  });
  const rate = (name: Neighbours, when: "surprised" | "settled") =>
    medianOf(results[name], (each) => each[when].perSecond);
  return names.flatMap((name): Measured[] => {
    const share = (when: "surprised" | "settled") => 100 * rate(name, when) / rate("none", when);
    const what = `healthy subscription beside hung: ${name}`;
    const lines: Measured[] = [
      { what, value: rate(name, "settled"), unit: "deliveries/s" },
      {
        what: "  its CPU each",
        value: medianOf(results[name], ({ settled }) => settled.cpuMsEach),
        unit: "ms",
      },
    ];
    if (name === "none") return lines;
    const kept = (when: "surprised" | "settled") => ({
      text: "≥ 90",
      isKept: share(when) >= 90,
    });
    return [
      ...lines,
      { what: "  of alone", value: share("settled"), unit: "%", promise: kept("settled") },
      {
        what: "  of alone, in the first 10 s, before the first time-out",
        value: share("surprised"),
        unit: "%",
        promise: kept("surprised"),
      },
    ];
  });
}
