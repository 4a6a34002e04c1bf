import { ADMIN_PASSWORD, type PostServer, startPostServer } from "./post_process.ts";
import { type Bench, inTurn, type Measured, medianOf, sleep } from "./post_rounds.ts";
import { copyFolder, seedFolder } from "./post_seed.ts";

const SUBSCRIPTIONS = 50;
const EVENTS_A_SECOND = 20; // 1,000 deliveries a second
const WATCHERS = 10;
const WARM_UP_MS = 2000;
const WINDOW_MS = 8000;

/** Measures what open consoles cost the server while it delivers 1,000 a second. */
export async function measureConsole({ receiver, folder, rounds }: Bench): Promise<Measured[]> {
  const endpoints = Array.from(
    { length: SUBSCRIPTIONS },
    (_, index) => `${receiver.urls[index % receiver.urls.length]}/${index}`,
  );
  const seeded = await seedFolder(folder("console"), [{ event: "x", endpoints, deliveries: 0 }]);
  let round = 0;
  const names = ["none", "ten"] as const;
  const results = await inTurn(rounds, names, async (name) => {
    const server = await startPostServer(copyFolder(seeded, folder(`console-${round++}`)));
    const stopping = new AbortController();
    try {
      const token = await logIn(server);
      const watching = Array.from({ length: name === "ten" ? WATCHERS : 0 }, () =>
        watch(server, token, stopping.signal));
      const dispatching = dispatch(server, token, stopping.signal);
      await sleep(WARM_UP_MS);
      const [before, first, startedMs] = [server.cpu(), await receiver.count(), performance.now()];
      await sleep(WINDOW_MS);
      const [after, last, endedMs] = [server.cpu(), await receiver.count(), performance.now()];
      stopping.abort();
      const told = await Promise.all(watching);
      await dispatching;
      const seconds = (endedMs - startedMs) / 1000;
      return {
        share: (after.totalMs - before.totalMs) / 10 / seconds, // percent of a core
        perSecond: (last - first) / seconds,
        told: Math.min(...told, Infinity),
      };
    } finally {
      stopping.abort();
      await server.stop();
    }
  });
  const share = (name: typeof names[number]) => medianOf(results[name], (each) => each.share);
  const cost = share("ten") - share("none");
  return [
    {
      what: "deliveries while nobody watches",
      value: medianOf(results["none"], ({ perSecond }) => perSecond),
      unit: "deliveries/s",
    },
    { what: "  CPU of the server", value: share("none"), unit: "% of a core" },
    {
      what: "deliveries while ten consoles watch",
      value: medianOf(results["ten"], ({ perSecond }) => perSecond),
      unit: "deliveries/s",
    },
    {
      what: "  bytes that each of them was told, at the least",
      value: medianOf(results["ten"], ({ told }) => told),
      unit: "bytes",
    },
    {
      what: "  what they cost more",
      value: cost,
      unit: "% of a core",
      promise: { text: "< 3", isKept: cost < 3 },
    },
  ];
}

async function logIn({ url }: PostServer): Promise<string> {
  const response = await fetch(`${url}/consumer/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: ADMIN_PASSWORD }),
  });
  return (await response.json()).token;
}

/** Reads the stream as an open console does; returns how many bytes came. */
async function watch({ url }: PostServer, token: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}/backend/stream`, { headers, signal });
    for await (const part of response.body ?? []) bytes += part.length;
  } catch {
    // the abort ends the stream
  }
  return bytes;
}

async function dispatch({ url }: PostServer, token: string, signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "x", data: { id: 7 } });
  for (let count = 0, startedMs = performance.now(); !signal.aborted; count++) {
    await fetch(`${url}/backend/event`, { method: "POST", headers, body });
    await sleep(Math.max(0, startedMs + count * 1000 / EVENTS_A_SECOND - performance.now()));
  }
}
