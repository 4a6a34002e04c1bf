import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Reaction, type Receiver, startReceiver } from "./receiver.ts";

/**
 * A receiver in a process of its own, so that its work is not that of the test or benchmark. By
 * hand: `node test/helpers/receiver_process.ts` prints its address and the address of its controls:
 * GET /count and GET /wait?n=&timeoutMs= (both take path=), GET /requests?path= (bodies in base64),
 * PUT /react {path, reactions}, DELETE / to forget everything. It ends by itself after an hour.
 */
export interface ReceiverProcess {
  readonly url: string;
  readonly pid: number;
  /** As in Receiver. */
  react(path: string, ...reactions: readonly [Reaction, ...Reaction[]]): Promise<void>;
  count(path?: string): Promise<number>;
  /** Waits for `n` requests to a path, or in all, and returns their number; else throws. */
  waitFor(n: number, timeoutMs: number, path?: string): Promise<number>;
  /** The kept requests as method, url and body. */
  requests(path?: string): Promise<readonly { method: string; url: string; body: Buffer }[]>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

interface Addresses {
  readonly url: string;
  readonly controls: string;
}

const START_MS = 10_000;
const LIFETIME_MS = 3_600_000;

export async function spawnReceiver(): Promise<ReceiverProcess> {
  const program = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [program, "--attached"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {},
  });
  const { url, controls } = await readAddresses(child);
  const ask = async (method: string, path: string, query: object = {}, body?: object) => {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) search.set(name, String(value));
    }
    const response = await fetch(`${controls}${path}?${search}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  };
  return {
    url,
    pid: child.pid ?? 0,
    async react(path, ...reactions) {
      await ask("PUT", "/react", {}, { path, reactions });
    },
    count: async (path) => Number(await ask("GET", "/count", { path })),
    async waitFor(n, timeoutMs, path) {
      return Number(await ask("GET", "/wait", { n, timeoutMs, path }));
    },
    async requests(path) {
      const rows: { method: string; url: string; body: string }[] =
        JSON.parse(await ask("GET", "/requests", { path }));
      return rows.map((row) => ({ ...row, body: Buffer.from(row.body, "base64") }));
    },
    async clear() {
      await ask("DELETE", "/");
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function readAddresses(child: ChildProcess): Promise<Addresses> {
  const { stdout } = child;
  if (stdout === null) throw new Error("the receiver has no output");
  const lines = createInterface({ input: stdout, signal: AbortSignal.timeout(START_MS) });
  for await (const line of lines) return JSON.parse(line);
  child.kill("SIGKILL");
  throw new Error("the receiver ended before it listened");
}

async function serve(isAttached: boolean): Promise<void> {
  const receiver = await startReceiver();
  const controls = createServer((request, response) => {
    control(receiver, request).then(
      (text) => response.end(text),
      (error: Error) => response.writeHead(400).end(error.message),
    );
  });
  controls.listen(0, "127.0.0.1", () => {
    const address = controls.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    const addresses: Addresses = { url: receiver.url, controls: `http://127.0.0.1:${port}` };
    process.stdout.write(`${JSON.stringify(addresses)}\n`);
  });
  setTimeout(() => process.exit(0), LIFETIME_MS).unref();
  // When the parent ends, however that happens, this pipe is closed.
  if (isAttached) process.stdin.resume().once("end", () => process.exit(0));
}

async function control(receiver: Receiver, request: IncomingMessage): Promise<string> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://controls");
  const path = searchParams.get("path") ?? undefined;
  switch (`${request.method} ${pathname}`) {
    case "GET /count":
      return String(receiver.count(path));
    case "GET /wait": {
      const [n, timeoutMs] = [Number(searchParams.get("n")), Number(searchParams.get("timeoutMs"))];
      await receiver.waitFor(n, timeoutMs, path);
      return String(receiver.count(path));
    }
    case "GET /requests":
      return JSON.stringify(receiver.requests(path).map(({ method, url, body }) => (
        { method, url, body: body.toString("base64") }
      )));
    case "PUT /react": {
      const planned: { path: string; reactions: [Reaction] } = JSON.parse(await readText(request));
      receiver.react(planned.path, ...planned.reactions);
      return "";
    }
    case "DELETE /":
      receiver.clear();
      return "";
    default:
      throw new Error("no such control");
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString();
}

if (import.meta.main) await serve(process.argv.includes("--attached"));
