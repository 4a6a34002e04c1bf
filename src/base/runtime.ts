/** The first major version of Node.js that has everything Gatepost is built on. */
const NEEDED_MAJOR = 26;

/** The signals that end a program of Gatepost in order. */
export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Ends the process on signals without another listener. By default PID 1 ignores signals. */
export function endOnSignal(host: NodeJS.Process): void {
  for (const signal of STOP_SIGNALS) {
    host.on(signal, () => host.listenerCount(signal) > 1 || host.exit(0));
  }
}

/** Handles the pending signals, then restores the default action of each. */
export async function releaseSignals(
  host: Pick<NodeJS.Process, "removeAllListeners">,
): Promise<void> {
  // The event loop handles pending signals between two immediates.
  await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  for (const signal of STOP_SIGNALS) host.removeAllListeners(signal);
}

/** Runs a program, or writes why this Node.js cannot. `run` imports what needs a newer Node.js. */
export async function runProgram(host: NodeJS.Process, run: () => Promise<void>): Promise<void> {
  const error = runtimeError(host.versions.node);
  // stdout has the log or a command's output: what endpoint modules print must not mix with it.
  Object.assign(console, new console.Console(host.stderr)); // node:console exports the same object
  if (error === undefined) return run();
  host.stderr.write(`${error}\n`);
  host.exitCode = 1;
}

/**
 * Returns what is wrong with the running Node.js, in one line, or undefined if it is new enough.
 *
 * @param version as in `process.versions.node`
 * @param codeUrl where this program lies: an installed package has no `npm start`
 */
export function runtimeError(version: string, codeUrl = import.meta.url): string | undefined {
  if (Number.parseInt(version, 10) >= NEEDED_MAJOR) return undefined;
  const remedy = codeUrl.includes("/node_modules/")
    ? `install that, or \`npm install node@${NEEDED_MAJOR}\` beside gatepost and call it by npx.`
    : "`npm start` installs and uses the right one.";
  return `Gatepost needs Node.js ${NEEDED_MAJOR} or newer and this is ${version}: ${remedy}`;
}
