import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { serve } from "../../src/app/serve.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import {
  type RunningServer,
  type RunResult,
  runNode,
  type ServerOptions,
  startServer,
} from "../helpers/process.ts";
import { runHere } from "../helpers/run_here.ts";

type Env = Readonly<Record<string, string>>;

/** Starts a server from its source, and kills it at the end of the test. */
export async function start(t: TestContext, options: ServerOptions): Promise<RunningServer> {
  const server = await startServer({ entry: SOURCE_ENTRY, ...options });
  t.after(() => server.kill());
  return server;
}

/** Tries to start a server on a database in the folder, in a process of its own. */
export function tryStart(folder: string, env: Env = {}): Promise<RunResult> {
  return runNode([SOURCE_ENTRY], { env: { ...envOn(folder), ...env } });
}

/** Does the same in this process; a server that starts is stopped by SIGTERM. */
export async function tryStartHere(
  folder: string,
  env: Env = {},
  ...args: readonly string[]
): Promise<RunResult> {
  const run = async (host: NodeJS.Process) => {
    await serve(host, 1);
    if (host.exitCode !== undefined) return;
    const ended = once(host, "exit");
    host.emit("SIGTERM", "SIGTERM");
    await ended;
  };
  const console = { ...globalThis.console };
  try {
    const argv = [process.execPath, SOURCE_ENTRY, ...args];
    return await runHere(run, { argv, env: { ...envOn(folder), ...env } });
  } finally {
    Object.assign(globalThis.console, console); // the server replaces it by its own
  }
}

/** The variables of a server on a database in the folder. */
export function envOn(folder: string): Env {
  return { GATEPOST_PORT: "0", GATEPOST_DATABASE: join(folder, "gatepost.db") };
}

/** Asserts one clear line on stderr without a stack, nothing on stdout, and exit 1. */
export function assertRefused({ code, stdout, stderr }: RunResult, reason: RegExp): void {
  assert.equal(code, 1, stderr);
  assert.equal(stdout, "");
  assert.match(stderr, reason);
  assert.match(stderr, /^[^\n]+\n$/, "one line");
  assert.doesNotMatch(stderr, /\n {4}at |\.ts:\d/);
}

/** Whether user `admin` can log in. */
export async function canLogIn(url: string, password: string): Promise<boolean> {
  const login = { username: "admin", password };
  const response = await createClient(url).postJson("/consumer/login", login);
  return response.status === 200;
}

/** Runs a program to its end. */
export async function run(
  program: string,
  args: readonly string[],
  env: Env = {},
): Promise<RunResult> {
  const child = spawn(program, args, { env: { PATH: process.env["PATH"], ...env } });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  await once(child, "close");
  return { code: child.exitCode, stdout, stderr };
}
