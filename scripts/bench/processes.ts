import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
  /** Ends the server by SIGTERM, so that it can write a profile. */
  stop(): Promise<void>;
}

const START_MS = 30_000;
const LOOK_MS = 2; // finer than the noise between two starts
const STOP_MS = 15_000;

/**
 * Runs Node and waits for a line of JSON with `"url"`. The output of the process goes into a file,
 * as an operator's log does, so that the load generator does not have to read it.
 */
export async function startProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const startedMs = performance.now();
  const { PATH = "" } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "gatepost-log-"));
  const path = join(folder, "stdout");
  const log = openSync(path, "w");
  const child = endWithParent(spawn(process.execPath, args, {
    env: { PATH, ...env },
    stdio: ["ignore", log, "inherit"],
  }));
  closeSync(log);
  child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  };
  try {
    const url = await readUrl(path, child, args);
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

async function readUrl(path: string, child: ChildProcess, args: readonly string[]) {
  const endMs = performance.now() + START_MS;
  while (performance.now() < endMs && child.exitCode === null) {
    const url = /"url":"([^"]+)"/.exec(readFileSync(path, "utf8"))?.[1];
    if (url !== undefined) return url;
    await sleep(LOOK_MS);
  }
  throw new Error(`${args.join(" ")}: it did not start`);
}

/** CPU time of a process so far, as the scheduler counts it; NaN if there is no /proc. */
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
