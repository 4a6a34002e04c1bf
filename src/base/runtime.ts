/** The first major version of Node.js that has everything Gatepost is built on. */
const NEEDED_MAJOR = 26;

/**
 * What is wrong with the running Node.js, in one line, or undefined when it is new enough.
 *
 * @param version as in `process.versions.node`
 */
export function runtimeFault(version: string): string | undefined {
  if (Number.parseInt(version, 10) >= NEEDED_MAJOR) return undefined;
  return `Gatepost needs Node.js ${NEEDED_MAJOR} or newer and this is ${version}: ` +
    "`npm start` installs and uses the right one.";
}
