import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, watch } from "node:fs";
import { close as closeInspector } from "node:inspector";
import { extname, join, resolve, sep } from "node:path";
import { STOP_SIGNALS } from "../base/runtime.ts";
import { createEngine } from "../database/engine.ts";
import type { Command, CommandContext } from "./command.ts";
import { Failure, UsageError } from "./failure.ts";
import { SERVE_COMMAND } from "./serve.ts";

const SETTLE_MS = 100; // editors and checkouts write several files at once
const STOP_MS = 3_000;

/** Dot files, packages, and databases with the files that SQLite keeps beside them. */
const IGNORED = /(^|[/\\])(\.|node_modules($|[/\\]))|\.(db|sqlite3?)(-\w+)?$/;

export const DEV_COMMAND: Command = {
  words: ["dev"],
  purpose: "Serve, and restart when an endpoint module changes",
  options: SERVE_COMMAND.options ?? {},
  details: [
    "Runs `gatepost serve`, and restarts it when a file in the folder GATEPOST_ENDPOINTS " +
      "(default: ./endpoints) is changed, added or removed. Files of all types count, except dot " +
      "files, node_modules, databases and what is behind a symbolic link to a folder. A server " +
      "that does not start is started again at the next change. Flags of Node, such as " +
      "--inspect, are passed to the server.",
  ],
  examples: [
    "gatepost dev",
    "GATEPOST_ENDPOINTS=./api gatepost dev",
    "NODE_OPTIONS=--inspect gatepost dev",
  ],
  async run(context) {
    const isSource = extname(import.meta.filename) === ".ts";
    const endpoints = context.config.endpointsFolder ?? "endpoints";
    const hasEndpoints = existsSync(endpoints);
    if (!hasEndpoints && (context.config.endpointsFolder !== undefined || !isSource)) {
      throw new UsageError(`there is no folder ${resolve(endpoints)}; gatepost init creates one`);
    }
    const src = join(import.meta.dirname, "..");
    const watched = [...hasEndpoints ? [endpoints] : [], ...isSource ? [src] : []];
    closeInspector(); // the server inherits --inspect and needs its port
    const env = { ...context.host.env, ...hasEndpoints && { GATEPOST_ENDPOINTS: endpoints } };
    const { address } = await createEngine(context.config);
    const code = await serveAndRestart(context, watched, env, address);
    if (code !== 0) throw new Failure("the server ended with an error; its output says why");
  },
};

/** Runs a server until a signal, restarts it at each change, and returns the exit code. */
function serveAndRestart(
  { host, terminal }: CommandContext,
  folders: readonly string[],
  env: NodeJS.ProcessEnv,
  database: string,
): Promise<number | null> {
  const { promise, resolve: end, reject } = Promise.withResolvers<number | null>();
  const args = [...host.execArgv, ...host.argv.slice(1).with(1, "serve")]; // instead of "dev"
  let server: ChildProcess | undefined; // the running one
  let next: "wait" | "start" | "end";
  let settleTimer: NodeJS.Timeout | undefined;
  start();

  function start(): void {
    next = "wait";
    server = spawn(host.execPath, args, { env, stdio: "inherit" }).once("exit", (code, signal) => {
      server = undefined;
      if (next === "end") end(code);
      else if (next === "start") start();
      else terminal.note(`gatepost: the server ended (${code ?? signal}); waiting for a change`);
    });
  }

  function restart(): void {
    if (next === "end") return;
    if (!server) return start();
    next = "start";
    server.kill();
    setTimeout((old) => old.kill("SIGKILL"), STOP_MS, server).unref();
  }

  function fail(error: Error): void {
    next = "end";
    server?.kill();
    reject(error);
  }

  for (const folder of folders) {
    watch(folder, { recursive: true, ignore: IGNORED }, (_, name) => {
      if (name === "") return fail(new Failure(`the folder ${folder} has been removed`));
      const path = resolve(folder, name ?? "");
      // The server itself makes the database and perhaps its folder.
      if (path.startsWith(database) || database.startsWith(path + sep)) return;
      clearTimeout(settleTimer);
      settleTimer = setTimeout(restart, SETTLE_MS);
    }).on("error", fail);
  }
  for (const signal of STOP_SIGNALS) {
    host.on(signal, () => {
      next = "end";
      if (!server?.kill(signal)) end(0);
    });
  }
  return promise;
}
