/**
 * Builds `dist` from `src`: the compiler's output, and the version and revision as literals.
 * Plain JavaScript, because `setup.mjs` loads it under whatever Node a machine has.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** @typedef {Record<string, string | undefined>} Env */

/**
 * True if `dist` is missing, older than what it is made from, or made at another commit.
 *
 * @param {string} root the folder of package.json
 * @param {Env} [env] GATEPOST_REVISION replaces the commit
 * @returns {boolean}
 */
export function isStale(root, env = process.env) {
  const stamp = join(root, "dist/version.js");
  // The stamp is written last: a build that was cut off left none, or the compiler's own.
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== versionModule(root, env)) return true;
  const builtMs = statSync(stamp).mtimeMs;
  const inputs = ["src", "package.json", "tsconfig.json", "scripts/build.mjs"];
  return inputs.some((input) => newestMs(join(root, input)) > builtMs);
}

/**
 * Makes `dist` anew. The compiler's complaints go to stderr.
 *
 * @param {string} root the folder of package.json
 * @param {Env} [env] GATEPOST_REVISION replaces the commit
 * @returns {boolean} false if the compiler found an error
 */
export function build(root, env = process.env) {
  const dist = join(root, "dist");
  const stampText = versionModule(root, env);
  rmSync(dist, { recursive: true, force: true });
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [compiler, "-p", join(root, "tsconfig.json")], {
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) {
    console.error("The build failed: the compiler found the errors above.");
    return false;
  }
  const program = join(dist, "cli.js");
  if (existsSync(program)) chmodSync(program, 0o755);
  writeFileSync(join(dist, "version.js"), stampText);
  return true;
}

/**
 * The text of `dist/version.js`.
 *
 * @param {string} root
 * @param {Env} env
 * @returns {string}
 */
function versionModule(root, env) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return [
    `export const version = ${JSON.stringify(version)};`,
    `export const revision = ${JSON.stringify(revisionOf(root, env))};`,
    "",
  ].join("\n");
}

/**
 * GATEPOST_REVISION, else the short commit, else `unknown`.
 *
 * @param {string} root
 * @param {Env} env
 * @returns {string}
 */
function revisionOf(root, env) {
  const given = env["GATEPOST_REVISION"];
  if (given) {
    // It becomes part of the User-Agent header of every callback.
    if (/^[A-Za-z0-9._+-]{1,64}$/.test(given)) return given;
    throw new Error("GATEPOST_REVISION must be 1 to 64 of A-Z a-z 0-9 . _ + -");
  }
  // A copy without its own history may lie inside somebody else's repository.
  if (!existsSync(join(root, ".git"))) return "unknown";
  try {
    const args = ["rev-parse", "--short", "HEAD"];
    return execFileSync("git", args, { cwd: root, stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  } catch {
    return "unknown"; // no git here, or no commit yet
  }
}

/**
 * The newest modification time below a path; a folder's own tells of files that went away.
 *
 * @param {string} path
 * @returns {number} milliseconds
 */
function newestMs(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  const below = readdirSync(path).map((name) => newestMs(join(path, name)));
  return Math.max(stat.mtimeMs, ...below);
}

if (process.argv[1] === import.meta.filename) {
  process.exitCode = build(join(import.meta.dirname, "..")) ? 0 : 1;
}
