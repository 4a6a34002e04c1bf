/** The first major version of Node.js that has everything Gatepost is built on. */
const NEEDED_MAJOR = 26;

/** What ends a program of Gatepost in order. */
export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Signals end the process until others listen to them: by default not a container's first one. */
export function endOnSignal(host: NodeJS.Process): void {
  for (const signal of STOP_SIGNALS) {
    host.on(signal, () => host.listenerCount(signal) > 1 || host.exit(0));
  }
}

/** Handles the signals that have come; from then on each does what it does by default. */
export async function releaseSignals(
  host: Pick<NodeJS.Process, "removeAllListeners">,
): Promise<void> {
  // The event loop takes them between two immediates.
  await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  for (const signal of STOP_SIGNALS) host.removeAllListeners(signal);
}

/** Runs a program, or says in one line why this Node.js cannot; `run` imports what needs it. */
export async function runProgram(host: NodeJS.Process, run: () => Promise<void>): Promise<void> {
  const error = runtimeError(host.versions.node);
  // stdout is the log's or a command's: what endpoint modules print must not come between.
  Object.assign(console, new console.Console(host.stderr)); // that of node:console is this one
  if (error === undefined) return run();
  host.stderr.write(`${error}\n`);
  host.exitCode = 1;
}

/**
 * What is wrong with the running Node.js, in one line, or undefined when it is new enough.
 *
 * @param version as in `process.versions.node`
 * @param codeUrl where this program lies: a package that is installed has no `npm start`
 */
export function runtimeError(version: string, codeUrl = import.meta.url): string | undefined {
  if (Number.parseInt(version, 10) >= NEEDED_MAJOR) return undefined;
  const remedy = codeUrl.includes("/node_modules/")
    ? `install that, or \`npm install node@${NEEDED_MAJOR}\` beside gatepost and call it by npx.`
    : "`npm start` installs and uses the right one.";
  return `Gatepost needs Node.js ${NEEDED_MAJOR} or newer and this is ${version}: ${remedy}`;
}
