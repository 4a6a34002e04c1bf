import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { endWithParent } from "./post_process.ts";

/** A server in a process of its own, measured from outside. */
export interface ServerProcess {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** From its start until it said where it listens. */
  readonly startMs: number;
  /** CPU time of all its threads so far. */
  cpuMs(): number;
  /** Memory that it has resident now. */
  residentMiB(): number;
  /** Ends it; with SIGTERM it may write a profile before. */
  stop(): Promise<void>;
}

const START_MS = 30_000;
const STOP_MS = 15_000;

/**
 * Runs Node and waits for a line of JSON with `"url"`. What the process prints after that is thrown
 * away unread, since reading lines would cost the load generator more than writing them costs.
 */
export async function startProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const startedMs = performance.now();
  const { PATH = "" } = process.env;
  const child = endWithParent(spawn(process.execPath, args, {
    env: { PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  }));
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  };
  try {
    const url = await readUrl(child.stdout, args);
    const { pid = 0 } = child;
    return {
      url,
      port: Number(new URL(url).port),
      pid,
      startMs: performance.now() - startedMs,
      cpuMs: () => cpuMsOf(pid),
      residentMiB: () => residentMiBOf(pid),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function readUrl(stdout: Readable, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (what: string) => reject(new Error(`${args.join(" ")}: ${what}`));
    const timer = setTimeout(() => fail("it took too long to start"), START_MS);
    let text = "";
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      const url = /"url":"([^"]+)"/.exec(text)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      stdout.off("data", onData).resume();
      resolve(url);
    };
    stdout.on("data", onData).once("end", () => fail("it ended"));
  });
}

/** CPU time of a process so far, by the scheduler's count; NaN where there is no /proc. */
export function cpuMsOf(pid: number): number {
  try {
    const folder = `/proc/${pid}/task`;
    return readdirSync(folder)
      .map((thread) => readFileSync(`${folder}/${thread}/schedstat`, "latin1"))
      .map((text) => Number(text.split(" ")[0]))
      .reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0);
  } catch {
    return NaN;
  }
}

function residentMiBOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  } catch {
    return NaN;
  }
}
