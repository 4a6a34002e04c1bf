import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  truncateSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { inheritedEnv } from "../helpers/process.ts";

const TOKEN = "metrics-token-of-the-log-trouble-test";

interface Server {
  readonly child: ChildProcess;
  /** Sends a GET whose response must be a 200, and returns its text. */
  get(path: string): Promise<string>;
  dropped(): Promise<number>;
}

/** A port that nobody listens on: the server's own choice could not be read from its log. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" ? address?.port ?? 0 : 0;
}

async function start(t: TestContext, stdio: StdioOptions): Promise<Server> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "gatepost-log-"));
  const child = spawn(process.execPath, [SOURCE_ENTRY], {
    stdio,
    timeout: 60_000,
    env: {
      ...inheritedEnv(),
      GATEPOST_PORT: String(port),
      GATEPOST_DATABASE: join(folder, "gatepost.db"),
      GATEPOST_ADMIN_PASSWORD: "correct horse battery",
      GATEPOST_METRICS_TOKEN: TOKEN,
    },
  });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGTERM");
    const result = await exited;
    rmSync(folder, { recursive: true });
    assert.deepEqual(result, [0, null]);
  });
  const server: Server = {
    child,
    async get(path) {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      assert.equal(response.status, 200);
      return response.text();
    },
    async dropped() {
      const text = await server.get("/system/metrics");
      return Number(/^gatepost_log_lines_dropped_total (\d+)$/m.exec(text)?.[1]);
    },
  };
  for (let waitedMs = 0;; waitedMs += 50) {
    assert.ok(waitedMs < 20_000 && child.exitCode === null, "the server did not start");
    if (await server.get("/system/health").then(() => true, () => false)) return server;
    await delay(50);
  }
}

/** Sends some requests, and waits until their lines are written. */
async function use(server: Server): Promise<void> {
  for (let count = 0; count < 10; count++) await server.get("/system/health");
  await delay(100);
}

test("with a log on a full device the server serves on and counts dropped lines", async (t) => {
  const full = openSync("/dev/full", "w");
  const server = await start(t, ["ignore", full, full]);
  closeSync(full);
  await use(server);
  const before = await server.dropped();
  assert.ok(before >= 10, `${before}`);
  await use(server);
  assert.ok(await server.dropped() >= before + 10);
});

test("with a log whose reader is gone the server serves on and counts dropped lines", async (t) => {
  const server = await start(t, ["ignore", "pipe", "pipe"]);
  await use(server);
  assert.equal(await server.dropped(), 0);
  server.child.stdout?.destroy();
  server.child.stderr?.destroy();
  await use(server);
  assert.ok(await server.dropped() >= 10);
});

test("a log goes on with whole lines once its full disk has space again", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-small-"));
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", folder]);
  t.after(() => {
    spawnSync("umount", ["-l", folder]);
    rmdirSync(folder);
  });
  if (mount.status !== 0) return t.diagnostic("not run: needs root, to mount a small file system");
  const path = join(folder, "log");
  const log = openSync(path, "a");
  const server = await start(t, ["ignore", log, "ignore"]);
  closeSync(log);

  const filler = join(folder, "filler");
  assert.throws(() => appendFileSync(filler, Buffer.alloc(131_072)), { code: "ENOSPC" });
  for (let round = 0; await server.dropped() === 0; round++) {
    assert.ok(round < 100, "the log takes lines though its disk is full");
    await use(server);
  }
  const read = () => readFileSync(path, "utf8").split("\n");
  const isWhole = (line: string) => line.startsWith("{") && line.endsWith("}");
  const wholeBefore = read().filter(isWhole).length;
  truncateSync(filler);
  const droppedBefore = await server.dropped();
  await use(server);
  assert.equal(await server.dropped(), droppedBefore);

  const lines = read();
  const whole = lines.filter(isWhole);
  assert.ok(whole.length >= wholeBefore + 10);
  for (const line of whole) JSON.parse(line);
  assert.ok(lines.length - whole.length <= 3, "one line that was cut off, an empty one, the end");
});
