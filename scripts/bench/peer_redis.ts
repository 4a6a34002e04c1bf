import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "./bench_case.ts";
import { endWithParent } from "./post_process.ts";
import { cpuMsOf, type ServerProcess, startProcess } from "./processes.ts";
import { findFreePort } from "../free_port.ts";

/** A Redis of its own, with workers of BullMQ that POST with fetch. */
export interface BullMq {
  /** Adds the jobs, one for each delivery, then starts a worker on them. */
  startWorker(urls: readonly string[], jobs: number, concurrency: number): Promise<ServerProcess>;
  stop(): Promise<void>;
}

const START_MS = 5000;

/** Starts a Redis that is durable before it responds; undefined, with a message, without Redis. */
export async function startBullMq({ peers, newFolder, say }: Stage): Promise<BullMq | undefined> {
  if (peers === undefined) return undefined;
  const folder = newFolder();
  mkdirSync(folder);
  const port = await findFreePort();
  const flags = ["--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
    "--appendonly", "yes", "--appendfsync", "always"];
  const redis = endWithParent(spawn("redis-server", flags.map(String), { stdio: "ignore" }));
  const ended = once(redis, "exit");
  const isMissing = await Promise.race([
    once(redis, "error").then(() => true),
    waitForPort(port).then(() => false),
  ]);
  if (isMissing) {
    ended.catch(() => {}); // the same error
    say("  without BullMQ: redis-server is not installed (Debian: apt-get install redis-server)");
    return undefined;
  }
  return {
    async startWorker(urls, jobs, concurrency) {
      const program = join(import.meta.dirname, "peer_bullmq.ts");
      const settings = JSON.stringify({ folder: peers, port, urls, jobs, concurrency });
      const worker = await startProcess([program, settings], { NODE_ENV: "production" });
      // The work of Redis is part of a job, as the work of SQLite is part of a delivery.
      return { ...worker, cpuMs: () => worker.cpuMs() + cpuMsOf(redis.pid ?? 0) };
    },
    async stop() {
      redis.kill("SIGTERM");
      await ended;
    },
  };
}

async function waitForPort(port: number): Promise<void> {
  for (const endMs = performance.now() + START_MS; performance.now() < endMs; await sleep(20)) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await once(socket, "connect").then(() => true, () => false);
    socket.destroy();
    if (isOpen) return;
  }
  throw new Error("redis-server does not listen");
}
