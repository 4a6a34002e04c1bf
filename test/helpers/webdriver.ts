import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

/** A chromedriver of its own, controlled by W3C WebDriver with plain fetch. */
export interface Driver {
  /** Sends one command and returns its `value`; throws with WebDriver's own error and message. */
  command(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown>;
  close(): Promise<void>;
}

/** An error that chromedriver returns instead of a value, e.g. code "no such element". */
export class WebDriverError extends Error {
  override readonly name = "WebDriverError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message.split("\n")[0] ?? ""}`);
    this.code = code;
  }
}

const START_MS = 60_000;
const COMMAND_MS = 30_000;

/** Starts chromedriver on a free port of the loopback. */
export async function startDriver(program = "/usr/bin/chromedriver"): Promise<Driver> {
  if (!existsSync(program)) {
    throw new Error(`${program} is missing; .ci/run installs Chromium and its driver`);
  }
  const child = spawn(program, ["--port=0"], { stdio: ["ignore", "pipe", "ignore"] });
  const endWithTest = () => void child.kill("SIGKILL");
  process.once("exit", endWithTest);
  const close = async () => {
    process.off("exit", endWithTest);
    await endProcess(child);
  };
  try {
    const url = `http://127.0.0.1:${await readPort(child)}`;
    return { command: (method, path, body) => sendCommand(method, url + path, body), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function sendCommand(method: string, url: string, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(COMMAND_MS),
    ...(method === "POST" && { body: JSON.stringify(body ?? {}) }),
  });
  const value = asRecord(await response.json())["value"];
  if (response.ok) return value;
  const { error, message } = { error: "unknown error", message: "", ...asRecord(value) };
  throw new WebDriverError(String(error), String(message));
}

/** Returns the value as a record; a value that is no object becomes an empty record. */
export function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

async function readPort(child: ChildProcess): Promise<string> {
  const { stdout } = child;
  if (stdout === null) throw new Error("chromedriver has no output");
  const timeout = AbortSignal.timeout(START_MS);
  const failed = once(child, "error", { signal: timeout }).then(([error]) => Promise.reject(error));
  const read = async (): Promise<string> => {
    for await (const line of createInterface({ input: stdout, signal: timeout })) {
      const port = /started successfully on port (\d+)/.exec(line)?.[1];
      if (port !== undefined) return port;
    }
    throw new Error("chromedriver ended before it listened");
  };
  const port = await Promise.race([read(), failed]);
  // The loop above has stopped reading, and a full pipe would block chromedriver.
  stdout.resume();
  return port;
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 3_000);
  await ended;
  clearTimeout(timer);
}
