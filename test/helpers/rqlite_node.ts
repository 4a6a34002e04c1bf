import { spawn } from "node:child_process";
import { once } from "node:events";
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

/** One rqlited, a process of its own. */
export interface RqliteNode {
  /** Of the process that was started last. */
  readonly pid: number;
  /** "http://127.0.0.1:20000", or https. */
  readonly url: string;
  /** Its data. */
  readonly folder: string;
  /** GET of a path, or POST of a JSON body; the response's body, unless it is an error. */
  call(path: string, body?: unknown): Promise<string>;
  /** Sends a signal, SIGKILL by default, and waits for the end if it is one that ends it. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it, on its data if there is any; resolves when it knows a leader. */
  restart(): Promise<void>;
}

/** How a node is started and called. */
export interface RqliteNodeOptions {
  readonly url: string;
  readonly folder: string;
  readonly program: string;
  readonly args: readonly string[];
  /** "name:password" for HTTP Basic. */
  readonly auth?: string;
  /** The authority that signed its certificate. */
  readonly ca?: string;
}

const START_MS = 20_000;
const CALL_MS = 2_000;
const MAX_OUTPUT_CHARS = 65_536;
const SURVIVED: readonly string[] = ["SIGSTOP", "SIGCONT"];

/** A node that does not run yet. */
export function createRqliteNode(options: RqliteNodeOptions): RqliteNode {
  const { url, folder, program, args, auth, ca } = options;
  let running: Rqlited | undefined;

  async function call(path: string, body?: unknown): Promise<string> {
    const request = (ca === undefined ? requestPlain : requestTls)(url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json" },
      agent: false,
      signal: AbortSignal.timeout(CALL_MS),
      ...(auth !== undefined && { auth }),
      ...(ca !== undefined && { ca }),
    });
    request.end(body === undefined ? "" : JSON.stringify(body));
    const [response] = await once(request, "response");
    const content = await text(response);
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${content}`);
    return content;
  }

  return {
    get pid() {
      return running?.pid ?? 0;
    },
    url,
    folder,
    call,
    async kill(signal = "SIGKILL") {
      running?.send(signal);
      if (!SURVIVED.includes(signal)) await running?.ended;
    },
    async restart() {
      const started = startProcess(program, args);
      running = started;
      const isReady = () => call("/readyz").then(() => true, () => false);
      for (const endMs = performance.now() + START_MS; !await isReady();) {
        if (started.hasEnded() || performance.now() > endMs) {
          started.send("SIGKILL");
          throw new Error(`rqlited did not start:\n${started.output()}`);
        }
        await sleep(10);
      }
    },
  };
}

interface Rqlited {
  readonly pid: number;
  readonly ended: Promise<unknown>;
  hasEnded(): boolean;
  send(signal: NodeJS.Signals): void;
  /** The end of what it printed. */
  output(): string;
}

function startProcess(program: string, args: readonly string[]): Rqlited {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const endWithTest = () => void child.kill("SIGKILL");
  process.once("exit", endWithTest);
  const ended = once(child, "close").finally(() => process.off("exit", endWithTest));
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    output = (output + chunk).slice(-MAX_OUTPUT_CHARS);
  });
  return {
    pid: child.pid ?? 0,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    send: (signal) => void child.kill(signal),
    output: () => output,
  };
}
