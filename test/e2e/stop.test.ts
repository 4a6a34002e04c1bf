// On SQLite alone: it is about the file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { writeFolder } from "../helpers/folder.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { type RunningServer, runNode } from "../helpers/process.ts";
import { exchangeRaw, openRaw } from "../helpers/raw_http.ts";
import { envOn, start, tryStart } from "./start_stage.ts";

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  test(`${signal} ends the server with exit 0, at once if no request is in progress`, async (t) => {
    const server = await start(t, {});
    const idle = await openRaw(Number(new URL(server.url).port));
    idle.write("GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(idle, "data"); // kept alive
    const startedMs = Date.now();
    assert.equal(await server.stop(signal), 0);
    assert.ok(Date.now() - startedMs < 3000);
    assert.match(server.lines.join("\n"), /"msg":"stopped"/);
  });
}

/** An endpoint module that gets the server a signal while it is loaded. */
const IMPATIENT = `process.kill(process.pid, "SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 100));\n`;

test("a signal during the start ends the server with exit 0 once it has started", async (t) => {
  const folder = await writeFolder(t, { "endpoints/impatient.mjs": IMPATIENT });
  const endpoints = join(folder, "endpoints");
  const { code, stdout, stderr } = await tryStart(folder, { GATEPOST_ENDPOINTS: endpoints });
  assert.equal(code, 0);
  assert.match(stderr, /^Created user admin, with password \S+\n$/);
  assert.match(stdout, /"msg":"stopped"/);
});

test("a signal during a start that fails ends the server with exit 0 too", async (t) => {
  const module = `${IMPATIENT}throw new Error("too late");\n`;
  const folder = await writeFolder(t, { "endpoints/impatient.mjs": module });
  const endpoints = join(folder, "endpoints");
  const { code, stderr } = await tryStart(folder, { GATEPOST_ENDPOINTS: endpoints });
  assert.equal(code, 0);
  assert.match(stderr, /impatient\.mjs: Error: too late/);
});

test("a signal while the program is loaded ends it with exit 0 too", async (t) => {
  const folder = await writeFolder(t, {});
  const preload = `data:text/javascript,import { registerHooks } from "node:module";
    registerHooks({ resolve(specifier, context, next) {
      if (specifier === "./app/serve.ts") process.kill(process.pid, "SIGTERM");
      return next(specifier, context);
    } });`;
  const { code, stderr } = await runNode(["--import", preload, SOURCE_ENTRY], {
    env: envOn(folder),
  });
  assert.equal(code, 0, stderr);
});

test("SIGUSR1 starts no debugger", async (t) => {
  const server = await start(t, {});
  process.kill(server.pid, "SIGUSR1");
  await delay(300);
  assert.equal((await createClient(server.url).get("/system/health")).status, 200);
  assert.doesNotMatch(server.stderr(), /Debugger/);
});

test("a server that stops completes requests in progress and refuses new ones", async (t) => {
  const server = await startSlow(t);
  const port = Number(new URL(server.url).port);
  const slow = exchangeRaw(port, "GET /slow?1500 HTTP/1.1\r\nHost: a\r\n\r\n", { waitMs: 9000 });
  await delay(200);
  const stopped = server.stop();
  await delay(200);
  const late = await exchangeRaw(port, "GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal(late.text, "");
  const { responses } = await slow;
  assert.deepEqual(responses.map(({ status, body }) => [status, body]), [[200, '"slow"']]);
  assert.equal(await stopped, 0);
});

test("clients that send requests all the time do not prevent a stop", async (t) => {
  const server = await start(t, {});
  const client = createClient(server.url);
  let isStopping = false;
  const statuses = new Set<number>();
  const busy = Array.from({ length: 4 }, async () => {
    while (!isStopping) {
      const response = await client.get("/system/health").catch(() => undefined);
      if (response) statuses.add(response.status);
    }
  });
  await delay(300);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < 4000, `${Date.now() - startedMs} ms`);
  isStopping = true;
  await Promise.all(busy);
  assert.deepEqual([...statuses], [200]);
});

test("a second signal ends the server at once, even if the clock was set back", async (t) => {
  const server = await startSlow(
    t,
    `const { now } = Date;
    process.on("SIGTERM", () => { Date.now = () => now() - 3_600_000; });`,
  );
  const port = Number(new URL(server.url).port);
  const slow = exchangeRaw(port, "GET /slow?9000 HTTP/1.1\r\nHost: a\r\n\r\n", { waitMs: 9000 });
  await delay(200);
  const startedMs = Date.now();
  const stopped = server.stop();
  await delay(300);
  process.kill(server.pid, "SIGTERM");
  await stopped;
  assert.ok(Date.now() - startedMs < 3000, `${Date.now() - startedMs} ms`);
  assert.equal((await slow).text, "");
});

/** A server with GET /slow?MS, which returns "slow" after so many milliseconds. */
async function startSlow(t: TestContext, more = ""): Promise<RunningServer> {
  const endpoints = await writeFolder(t, {
    "slow.js": `import { setTimeout as delay } from "node:timers/promises";
    export const slow = {
      method: "GET",
      path: "/slow",
      public: true,
      async handle({ query }) {
        await delay(Number(query.toString().replace("=", "")));
        return "slow";
      },
    };
    ${more}\n`,
  });
  return start(t, { env: { GATEPOST_ENDPOINTS: endpoints } });
}
