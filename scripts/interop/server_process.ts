import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The built server in a process of its own. */
export interface ServerProcess {
  /** Where it listens. */
  readonly url: string;
  /** Ends it as an operator does; returns its exit code. */
  stop(): Promise<number | null>;
}

const ENTRY = join(import.meta.dirname, "../../dist/server.js");
const START_MS = 20_000;
/** The server's own limit is 10 s. */
const STOP_MS = 15_000;

/** Starts dist/server.js with these variables alone, and waits until it listens. */
export async function startServer(
  env: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [ENTRY], {
    env: { PATH, HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = once(child, "close").finally(() => process.off("exit", kill));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    const timer = setTimeout(kill, STOP_MS);
    await ended;
    clearTimeout(timer);
    return child.exitCode;
  };
  try {
    const url = await readListening(child, ended);
    return { url, stop: () => end("SIGTERM") };
  } catch (error) {
    await end("SIGKILL");
    throw error;
  }
}

/** The address in the line that says "listening"; rejects with the output if none comes. */
function readListening(child: ChildProcess, ended: Promise<unknown>): Promise<string> {
  return new Promise((resolve, reject) => {
    const output: string[] = [];
    const fail = () => reject(new Error(`The server did not start:\n${output.join("\n")}`));
    const timer = setTimeout(fail, START_MS);
    const stop = () => {
      clearTimeout(timer);
      fail();
    };
    ended.then(stop, stop);
    if (child.stdout === null || child.stderr === null) return stop();
    createInterface({ input: child.stderr }).on("line", (line) => output.push(line));
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (output.length < 100) output.push(line);
      const { msg, url }: { msg?: unknown; url?: unknown } = JSON.parse(line);
      if (msg !== "listening" || typeof url !== "string") return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}
