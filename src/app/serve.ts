import { fstatSync } from "node:fs";
import { startApp } from "../app.ts";
import { createLineSink } from "../base/line_sink.ts";
import { type BufferedLog, createLogger } from "../base/log.ts";
import { messageOf } from "../base/message_of.ts";
import { hashLimit, poolSize } from "../base/password.ts";
import { parseConfig } from "../config.ts";
import { LoadError } from "../hosting/load.ts";
import { createLateChunkCheck } from "./late_chunk.ts";
import { UnavailableError, UnusableDatabaseError } from "../database/database.ts";
import { STOP_SIGNALS } from "../base/runtime.ts";
import { revision, version } from "../version.ts";

const EXIT_FAILED = 1;
const EXIT_MISCONFIGURED = 2;
// Ctrl+C under npm arrives twice, from the terminal and from npm, but means one stop.
const REPEATED_SIGNAL_MS = 100;
const USAGE = "The server takes no arguments but --version and --help: GATEPOST_… variables " +
  "configure it (`gatepost check` shows them), and `gatepost --help` explains how to administer " +
  "it.\n";

/**
 * Reads the configuration, starts the service, and serves until a signal. Sets the exit code:
 * 0 stopped, 1 could not start, 2 wrong configuration or argument. A second signal ends the process
 * at once.
 */
export async function serve(host: NodeJS.Process, cores: number): Promise<void> {
  host.stderr.on("error", () => {}); // output that it does not take is lost
  const refuse = (text: string, exitCode = EXIT_MISCONFIGURED): void => {
    host.stderr.write(text);
    host.exitCode = exitCode;
  };
  const [argument] = host.argv.slice(2);
  if (argument === "--version" || argument === "--help") {
    host.stdout.on("error", ({ message }) =>
      refuse(`gatepost: the output could not be written: ${message}\n`, EXIT_FAILED));
    host.stdout.write(argument === "--help" ? USAGE : `gatepost ${version}@${revision}\n`);
    return;
  }
  if (argument !== undefined) return refuse(USAGE);
  const result = parseConfig(host.env);
  if (!result.ok) return refuse(result.errors.map((error) => `${error}\n`).join(""));
  const { config } = result;
  // In time: libuv reads this when the thread pool gets its first task.
  host.env["UV_THREADPOOL_SIZE"] ??= String(poolSize(cores));
  makeNonBlocking(host.stdout);
  makeNonBlocking(host.stderr);
  const sink = createLineSink(host.stdout);
  const errors = createLineSink(host.stderr);
  // Modules print by the same rules as the log: output never waits for stderr or fills memory.
  const stdout = Object.assign(Object.create(host.stderr), { write: errors.write });
  Object.assign(console, new console.Console({ stdout, ignoreErrors: false }));
  const log = createLogger({
    level: config.logLevel,
    write: sink.write,
    now: Date.now,
    pretty: host.stdout.isTTY,
  });
  const isLateChunk = createLateChunkCheck(log);
  host.on("unhandledRejection", (error) => {
    if (!isLateChunk(error)) log.error("unhandled rejection", { error });
  });
  host.on("uncaughtException", (error) => {
    if (isLateChunk(error)) return;
    log.error("uncaught exception", { error });
    log.flush();
    host.exit(EXIT_FAILED); // stored data is safe, but the state in memory may be wrong
  });

  const starting = startApp(config, {
    log,
    droppedLogLines: () => sink.dropped() + errors.dropped(),
    // Parsed as libuv parses it.
    hashLimit: hashLimit(cores, Number.parseInt(host.env["UV_THREADPOOL_SIZE"], 10) || 1),
    print: (line) => void host.stderr.write(`${line}\n`),
  });
  stopOnSignal(host, starting, log); // also while it starts
  try {
    await starting;
  } catch (error) {
    log.flush();
    host.stderr.write(startError(error));
    host.exit(host.exitCode ?? EXIT_FAILED);
  }
}

/**
 * Makes a terminal non-blocking. Node writes to a terminal synchronously, so one that is stopped
 * (Ctrl+S) or not read would stop the server. Another user's terminal stays as it is: Node cannot
 * open it anew, and the change would affect the shell that shares it.
 */
function makeNonBlocking({ isTTY, fd, _handle: handle }: {
  readonly isTTY?: boolean;
  readonly fd: number;
  /** Internal to Node; there is no public way. */
  readonly _handle?: { setBlocking?(isBlocking: boolean): unknown };
}): void {
  const user = process.geteuid?.();
  if (isTTY && (user === 0 || user === fstatSync(fd).uid)) handle?.setBlocking?.(false);
}

function stopOnSignal(
  host: NodeJS.Process,
  starting: ReturnType<typeof startApp>,
  log: BufferedLog,
): void {
  let stoppedAtMs: number | undefined;
  const stop = async (signal: NodeJS.Signals) => {
    if (stoppedAtMs !== undefined) {
      if (performance.now() - stoppedAtMs > REPEATED_SIGNAL_MS) host.exit(EXIT_FAILED);
      return;
    }
    stoppedAtMs = performance.now(); // by a clock that is never set
    log.info("stopping", { signal });
    host.exitCode = 0; // even if the start still fails, since the stop was asked for
    await (await starting)();
    log.info("stopped");
    log.flush();
    host.exit(0);
  };
  for (const signal of STOP_SIGNALS) host.on(signal, stop);
  host.on("SIGUSR1", () => {}); // else Node opens its debugger to every user of this machine
}

/** Says why the start failed: one line if an operator can repair it, the stack if it is a bug. */
function startError(error: unknown): string {
  if (!(error instanceof Error)) return `Gatepost cannot start: ${String(error)}\n`;
  const { message, cause, stack } = error;
  if (error instanceof UnusableDatabaseError || error instanceof LoadError) return `${message}\n`;
  const isForeseen = error instanceof UnavailableError || "syscall" in error;
  return `Gatepost cannot start: ${isForeseen ? messageOf(cause ?? error) : stack}\n`;
}
