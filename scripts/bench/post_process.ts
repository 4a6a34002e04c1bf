import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { MEMORY_ENV, MEMORY_FLAGS } from "../../src/cli/serve.ts";

/** `dist/server.js` as an operator runs it, measured from outside. */
export interface PostServer {
  readonly url: string;
  readonly port: number;
  /** From its start until GET /system/ready answered 200. */
  readonly readyMs: number;
  cpu(): CpuTime;
  /** The peak of its resident memory. */
  peakMiB(): number;
  signal(signal: NodeJS.Signals): void;
  /** Ends the server at once, or by SIGTERM so that it can write a profile. */
  stop(signal?: "SIGKILL" | "SIGTERM"): Promise<void>;
}

/** CPU time of a process in milliseconds. */
export interface CpuTime {
  readonly totalMs: number;
  readonly mainThreadMs: number;
}

const ROOT = join(import.meta.dirname, "../..");
const START_MS = 20_000;
const READY_POLL_MS = 5;

/** Kills a child when this process exits. */
export function endWithParent<Child extends ChildProcess>(child: Child): Child {
  const end = () => void child.kill("SIGKILL");
  process.once("exit", end);
  child.once("exit", () => process.off("exit", end));
  return child;
}

/**
 * Starts the server on a folder with its database and waits until it is ready. Durability and the
 * address guard are as by default; the guard allows the loopback.
 */
export async function startPostServer(
  folder: string,
  env: Readonly<Record<string, string>> = {},
  nodeFlags: readonly string[] = [],
): Promise<PostServer> {
  const startedMs = performance.now();
  const args = [...MEMORY_FLAGS, ...nodeFlags, join(ROOT, "dist/server.js")];
  const child = endWithParent(spawn(process.execPath, args, {
    env: {
      ...MEMORY_ENV,
      GATEPOST_PORT: "0",
      GATEPOST_DATABASE: join(folder, "gatepost.db"),
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_ADMIN_PASSWORD: ADMIN_PASSWORD,
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  }));
  const stop = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
    await ended;
    clearTimeout(timer);
  };
  try {
    const url = await readListening(child);
    while ((await fetch(`${url}/system/ready`).then(discard)).status !== 200) {
      if (performance.now() - startedMs > START_MS) throw new Error("The server is never ready");
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
    const pid = child.pid ?? 0;
    return {
      url,
      port: Number(new URL(url).port),
      readyMs: performance.now() - startedMs,
      cpu: () => cpuOf(pid),
      peakMiB: () => peakOf(pid),
      signal: (signal) => void child.kill(signal),
      stop: (signal = "SIGKILL") => stop(signal),
    };
  } catch (error) {
    await stop("SIGKILL");
    throw error;
  }
}

/** The password of user admin, whom the first start makes. */
export const ADMIN_PASSWORD = "measured-from-outside";

async function discard(response: Response): Promise<Response> {
  await response.arrayBuffer();
  return response;
}

async function readListening(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("The server has no output");
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("The server does not start")), START_MS);
    child.once("exit", () => reject(new Error("The server has ended")));
    lines.on("line", (line) => { // read to the end: a full pipe would block the server
      if (!line.includes('"msg":"listening"')) return;
      clearTimeout(timer);
      resolve(JSON.parse(line).url);
    });
  });
}

/** Reads the CPU time of every live thread, which the scheduler counts in nanoseconds. */
function cpuOf(pid: number): CpuTime {
  const ofThread = (id: string) => {
    try {
      const text = readFileSync(`/proc/${pid}/task/${id}/schedstat`, "latin1");
      return Number(text.split(" ")[0]) / 1e6;
    } catch {
      return 0; // the thread has just ended
    }
  };
  const totalMs = readdirSync(`/proc/${pid}/task`).reduce((sum, id) => sum + ofThread(id), 0);
  return { totalMs, mainThreadMs: ofThread(String(pid)) };
}

function peakOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}
