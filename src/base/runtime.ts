/** The first major version of Node.js that has everything Gatepost is built on. */
const NEEDED_MAJOR = 26;

/** What ends a program of Gatepost in order. */
export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

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
