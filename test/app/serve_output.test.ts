import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { writeFolder } from "../helpers/folder.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";

/** The time limit of a request that nothing should delay, on a busy machine. */
const LIMIT_MS = 10_000;
const METRICS_TOKEN = "t".repeat(32);

/** Starts a server with the given program, and waits until its log says where it listens. */
async function start(
  t: TestContext,
  [program = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const folder = await writeFolder(t, {});
  const child = spawn(program, args, {
    env: { ...process.env, GATEPOST_PORT: "0", GATEPOST_DATABASE: join(folder, "g.db"),
      GATEPOST_METRICS_TOKEN: METRICS_TOKEN, ...env },
  });
  t.after(async () => {
    if (child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  let log = "";
  child.stdout.on("data", (chunk) => log += chunk);
  for (;;) {
    await once(child.stdout, "data");
    const [, url] = /listening.*?(http:\/\/[\d.]+:\d+)[^\n]*\n/.exec(log) ?? [];
    if (url !== undefined) return { child, url };
  }
}

async function get(url: string): Promise<string> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(LIMIT_MS) });
  return response.text();
}

// `script` of util-linux gives a program a terminal.
const onLinux = process.platform === "linux" ? test : () => {};

onLinux("a terminal that is stopped by Ctrl+S delays neither requests nor Ctrl+C", async (t) => {
  const command = `exec '${process.execPath}' '${SOURCE_ENTRY}'`;
  const { child, url } = await start(t, ["script", "-qefc", command, "/dev/null"]);
  child.stdin?.write("\x13");
  for (let count = 0; count < 200; count++) await get(`${url}/system/health`);
  child.stdin?.write("\x03");
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("lines that modules print to an unread stderr are dropped and counted", async (t) => {
  const endpoints = await writeFolder(t, {
    "noisy.js": `export const noisy = { method: "GET", path: "/noisy", public: true, handle() {
      for (let line = 0; line < 1000; line++) console.log("x".repeat(1023));
    } };`,
  });
  const env = { GATEPOST_ENDPOINTS: endpoints };
  const { child, url } = await start(t, [process.execPath, SOURCE_ENTRY], env);
  for (let count = 0; count < 10; count++) await get(`${url}/noisy`);
  const metrics = await get(`${url}/system/metrics`);
  const [, dropped = ""] = /^gatepost_log_lines_dropped_total (\d+)$/m.exec(metrics) ?? [];
  assert.ok(Number(dropped) > 5000, dropped); // the others are in the buffer of 4 MiB or the pipe
  child.kill();
  assert.deepEqual(await once(child, "exit"), [0, null]);
});
