/**
 * Measures the console in Chromium: its first paint, and the CPU time of its live pages.
 *
 *   npm run build && node_modules/.bin/node scripts/bench/console_page.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, openBrowser } from "../../test/helpers/browser.ts";
import { ADMIN_PASSWORD, type PostServer, startPostServer } from "./post_process.ts";
import { startPostReceiver } from "./post_receiver.ts";
import { medianOf, sleep } from "./post_rounds.ts";

const PAINTS = 7;
const WINDOW_MS = 10_000;
const SUBSCRIPTIONS = 20;
const EVENTS_A_SECOND = 10; // 200 deliveries a second
const FILL_MS = 15_000;
const ROWS = 200;

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-console-"));
  const receiver = await startPostReceiver();
  const server = await startPostServer(folder);
  const browser = await openBrowser({ width: 1280, height: 900 });
  const stopping = new AbortController();
  try {
    const token = await logIn(server);
    for (let index = 0; index < SUBSCRIPTIONS; index++) {
      const endpoint = `${receiver.urls[index % receiver.urls.length]}/${index}`;
      await post(server, "/consumer/subscription", { event: "x", endpoint }, token);
    }
    void dispatch(server, token, stopping.signal);
    await signIn(browser, server);
    const paints: number[] = [];
    for (let count = 0; count < PAINTS; count++) paints.push(await paint(browser, server));
    print("first paint of the overview, signed in", medianOf(paints, Number), "ms");
    await sleep(FILL_MS);
    print("overview, live: the page's work", await work(browser), "% of a core");
    await browser.goto(`${server.url}/console/deliveries`);
    await browser.find("main table");
    while (await browser.count("main tbody tr") < ROWS) {
      await browser.execute("document.querySelector('.foot button')?.click()");
      await sleep(300);
    }
    print(`a table of ${ROWS} rows, live: the page's work`, await work(browser), "% of a core");
  } finally {
    stopping.abort();
    await browser.close();
    await server.stop();
    await receiver.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function logIn(server: PostServer): Promise<string> {
  const login = { username: "admin", password: ADMIN_PASSWORD };
  return String((await post(server, "/consumer/login", login))["token"]);
}

async function post(
  { url }: PostServer,
  path: string,
  body: object,
  token = "",
): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.json();
}

async function dispatch(server: PostServer, token: string, signal: AbortSignal): Promise<void> {
  for (let count = 0, startedMs = performance.now(); !signal.aborted; count++) {
    await post(server, "/backend/event", { name: "x", data: { count } }, token).catch(() => {});
    await sleep(Math.max(0, startedMs + count * 1000 / EVENTS_A_SECOND - performance.now()));
  }
}

async function signIn(browser: Browser, { url }: PostServer): Promise<void> {
  await browser.goto(`${url}/console`);
  await browser.type("#username", "admin");
  await browser.type("#password", ADMIN_PASSWORD);
  await browser.click("form [type=submit]");
  await browser.find("main h1");
}

/** Returns the ms from the last navigation, after the silent sign-in, to the first paint. */
async function paint(browser: Browser, { url }: PostServer): Promise<number> {
  await browser.goto(`${url}/console`);
  await browser.find("main h1");
  return Number(await browser.execute(
    "return performance.getEntriesByName('first-contentful-paint')[0].startTime",
  ));
}

/** Returns how much of a core the page's main thread uses, in percent. */
async function work(browser: Browser): Promise<number> {
  await browser.devtools("Performance.enable", {});
  const read = async () => {
    const response = await browser.devtools("Performance.getMetrics", {});
    const { metrics } = response as { metrics: readonly { name: string; value: number }[] };
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN;
  };
  const [before, startedMs] = [await read(), performance.now()];
  await sleep(WINDOW_MS);
  return (await read() - before) * 1000 / (performance.now() - startedMs) * 100;
}

function print(what: string, value: number, unit: string): void {
  process.stdout.write(`${what.padEnd(60)} ${value.toFixed(1).padStart(8)} ${unit}\n`);
}

await main();
