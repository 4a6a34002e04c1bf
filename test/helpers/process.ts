import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { locateDatabase, releaseDatabase } from "./engine.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The program that an operator starts; `npm run build` makes it. */
export const SERVER_ENTRY = join(ROOT, "dist/server.js");
/** The program by which an operator administers the server. */
export const CLI_ENTRY = join(ROOT, "dist/cli.js");

const START_MS = 60_000;
/** The server's own limit for a stop is 10 s. */
const STOP_MS = 15_000;
const RUN_MS = 60_000;
const MAX_LINES = 100_000;
const MAX_OUTPUT_CHARS = 16_777_216;

type Env = Readonly<Record<string, string | undefined>>;

export interface ServerOptions {
  /** Added to the defaults: GATEPOST_PORT=0 and a database in `folder`. */
  readonly env?: Env;
  /** An existing data folder; without it a folder is made, and removed at the end. */
  readonly folder?: string;
  /** A program to start instead of dist/server.js. */
  readonly entry?: string;
  /** Arguments after the entry. */
  readonly args?: readonly string[];
  /** The working directory; by default that of the tests. */
  readonly cwd?: string;
  /** Flags of Node, before the entry. */
  readonly nodeFlags?: readonly string[];
}

/** A server as an operator runs it: its own process, its own data folder. */
export interface RunningServer {
  /** The address in its line "listening". */
  readonly url: string;
  readonly pid: number;
  readonly folder: string;
  /** Lines of stdout so far, 100,000 at most. */
  readonly lines: readonly string[];
  /** All of stderr so far. */
  stderr(): string;
  /** Sends the signal (SIGTERM) and returns the exit code, null if a signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Kills the process, as a power cut would. */
  kill(): Promise<void>;
}

export interface RunResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Makes a folder for a test's data; the caller removes it. */
export function createDataFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "gatepost-test-"));
}

/** Starts a server and waits until it listens; throws with its output if that takes a minute. */
export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const { env = {}, entry = SERVER_ENTRY, args = [], nodeFlags = [] } = options;
  const folder = options.folder ?? await createDataFolder();
  const database = join(folder, "gatepost.db");
  const child = await spawnNode([...nodeFlags, entry, ...args], {
    GATEPOST_PORT: "0",
    GATEPOST_DATABASE: database,
    ...env,
  }, options.cwd);
  child.stdin?.end();
  const exited = waitForExit(child);
  const stderr = collect(child.stderr);
  const lines: string[] = [];

  const removeOnExit = () => rmSync(folder, { recursive: true, force: true });
  if (options.folder === undefined) process.once("exit", removeOnExit);
  const cleanUp = async () => {
    process.off("exit", removeOnExit);
    if (options.folder !== undefined) return;
    await releaseDatabase(database);
    await rm(folder, { recursive: true, force: true });
  };
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    const code = await exited;
    clearTimeout(timer);
    await cleanUp();
    return code;
  };

  try {
    const url = await readListening(child, lines, exited);
    return {
      url,
      pid: child.pid ?? 0,
      folder,
      lines,
      stderr,
      stop: (signal = "SIGTERM") => end(signal),
      async kill() {
        await end("SIGKILL");
      },
    };
  } catch (error) {
    const code = await end("SIGKILL");
    const output = [...lines, stderr()].join("\n");
    throw new Error(`the server did not start (exit ${code}):\n${output}`, { cause: error });
  }
}

/** Runs the administration program to its end. */
export function runCli(
  args: readonly string[],
  options: { readonly env?: Env; readonly stdin?: string; readonly entry?: string } = {},
): Promise<RunResult> {
  return runNode([options.entry ?? CLI_ENTRY, ...args], options);
}

/** Runs Node with these arguments to its end; kills it after a minute. */
export async function runNode(
  args: readonly string[],
  options: { readonly env?: Env; readonly stdin?: string } = {},
): Promise<RunResult> {
  const child = await spawnNode(args, options.env ?? {});
  const exited = waitForExit(child);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  // A program may end without reading its input and so close the pipe: the test must not fail.
  child.stdin?.on("error", () => child.stdin?.destroy());
  child.stdin?.end(options.stdin ?? "");
  const timer = setTimeout(() => child.kill("SIGKILL"), RUN_MS);
  const code = await exited;
  clearTimeout(timer);
  return { code, stdout: stdout(), stderr: stderr() };
}

/** The environment variables that a test's process inherits: none that a shell has left there. */
export function inheritedEnv(): Env {
  const { PATH, HOME, NODE_V8_COVERAGE, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_V8_COVERAGE, NODE_COMPILE_CACHE };
}

async function spawnNode(args: readonly string[], env: Env, cwd?: string): Promise<ChildProcess> {
  const { GATEPOST_DATABASE: path } = env;
  const database = path && { GATEPOST_DATABASE: await locateDatabase(path) };
  return spawn(process.execPath, args, {
    cwd,
    env: { ...inheritedEnv(), ...env, ...database },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** Resolves with the exit code when the process has ended and its output is read. */
async function waitForExit(child: ChildProcess): Promise<number | null> {
  const endWithTest = () => void child.kill("SIGKILL");
  process.once("exit", endWithTest);
  try {
    await once(child, "close");
    return child.exitCode;
  } finally {
    process.off("exit", endWithTest);
  }
}

function collect(stream: ChildProcess["stderr"]): () => string {
  let text = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    if (text.length < MAX_OUTPUT_CHARS) text += chunk;
  });
  return () => text;
}

/** Collects all lines; resolves with the address in the line that says "listening". */
function readListening(
  child: ChildProcess,
  lines: string[],
  exited: Promise<unknown>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("it took too long")), START_MS);
    const fail = (error?: unknown) => {
      clearTimeout(timer);
      reject(error ?? new Error("it ended"));
    };
    exited.then(() => fail(), fail);
    if (child.stdout === null) return fail();
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (lines.length < MAX_LINES) lines.push(line);
      const url = urlOfListening(line);
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}

function urlOfListening(line: string): string | undefined {
  if (!line.startsWith("{")) return undefined;
  const { msg, url }: { msg?: unknown; url?: unknown } = JSON.parse(line);
  return msg === "listening" && typeof url === "string" ? url : undefined;
}
