import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

/** One rqlited, a process of its own. */
export interface RqliteNode {
  /** The id of the process that was started last. */
  readonly pid: number;
  /** "http://127.0.0.1:20000", or https. */
  readonly url: string;
  /** The folder of its data. */
  readonly folder: string;
  /** GET of a path, or POST of a JSON body; returns the response's body, throws at an error. */
  call(path: string, body?: unknown): Promise<string>;
  /** Sends a signal, SIGKILL by default; waits for the end if the signal ends the process. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts the node, on its data if there is any; resolves once the node knows a leader. */
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
  /** The certificate of the authority that signed the node's certificate. */
  readonly ca?: string;
}

const START_MS = 60_000;
const CALL_MS = 2_000;
const SURVIVED: readonly string[] = ["SIGSTOP", "SIGCONT"];

/** Creates a node, which does not run yet. */
export function createRqliteNode(options: RqliteNodeOptions): RqliteNode {
  const { url, folder, program, args, auth, ca } = options;
  const log = `${folder}.log`;
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
      await running?.send(signal);
    },
    async restart() {
      const started = startProcess(program, args, log);
      running = started;
      const isReady = () => call("/readyz").then(() => true, () => false);
      for (const endMs = performance.now() + START_MS; !await isReady();) {
        if (started.hasEnded() || performance.now() > endMs) {
          await started.send("SIGKILL");
          throw new Error(`rqlited did not start:\n${readFileSync(log, "utf8")}`);
        }
        await sleep(10);
      }
    },
  };
}

interface Rqlited {
  readonly pid: number;
  hasEnded(): boolean;
  /** Resolves once it has ended, if the signal ends it. */
  send(signal: NodeJS.Signals): Promise<void>;
}

function startProcess(program: string, args: readonly string[], log: string): Rqlited {
  // The log is a file, since a pipe would keep the caller's process from ending by itself.
  const output = openSync(log, "w");
  const child = spawn(program, args, { stdio: ["ignore", "ignore", output] });
  closeSync(output);
  child.unref();
  const ended = once(child, "close");
  return {
    pid: child.pid ?? 0,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    async send(signal) {
      child.kill(signal);
      if (SURVIVED.includes(signal)) return;
      child.ref();
      await ended;
    },
  };
}
