/**
 * Builds `dist` from `src`: the compiler's output, the version and revision as literals, and the
 * example for authors.
 * Plain JavaScript, because `setup.mjs` loads it under whatever Node a machine has.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

/** @typedef {Record<string, string | undefined>} Env */

/** What `gatepost init` writes. */
const EXAMPLE = "scripts/example";
/** A revision that nobody tells. */
const UNKNOWN = "unknown";
/** What `dist` is made from. */
export const INPUTS = ["package.json", "tsconfig.json", "scripts/build.mjs", EXAMPLE, "src"];

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
  const built = existsSync(stamp) ? readFileSync(stamp, "utf8") : "";
  const [, builtFrom = UNKNOWN] = /^export const revision = "(.*)";$/m.exec(built) ?? [];
  const revision = revisionOf(root, env);
  // Where git says nothing (it is not here, or the clone is another user's) the build's own counts.
  if (built !== versionModule(root, revision === UNKNOWN ? builtFrom : revision)) return true;
  const builtMs = statSync(stamp).mtimeMs;
  return INPUTS.some((input) => newestMs(join(root, input)) > builtMs);
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
  const stampText = versionModule(root, revisionOf(root, env));
  rmSync(dist, { recursive: true, force: true });
  if (!compile(root, "tsconfig.json") || !compile(root, "src/console/tsconfig.json")) {
    console.error("The build failed: the compiler found the errors above.");
    return false;
  }
  packConsole(root);
  cpSync(join(root, EXAMPLE), join(dist, "example"), { recursive: true });
  const program = join(dist, "cli.js");
  if (existsSync(program)) chmodSync(program, 0o755);
  writeFileSync(join(dist, "version.js"), stampText);
  return true;
}

/**
 * Runs the compiler; its complaints go to stderr.
 *
 * @param {string} root
 * @param {string} project a tsconfig below the root
 * @returns {boolean}
 */
function compile(root, project) {
  const args = [join(root, "node_modules/typescript/bin/tsc"), "-p", join(root, project)];
  return spawnSync(process.execPath, args, { stdio: ["ignore", 2, 2] }).status === 0;
}

/** Strings, templates without one inside another, and regular expressions. */
const QUOTED = new RegExp(
  [
    String.raw`"(?:[^"\\]|\\.)*"`,
    String.raw`'(?:[^'\\]|\\.)*'`,
    "`(?:[^`\\\\]|\\\\.)*`",
    String.raw`(?<=[=(,:!&|?] ?)\/(?![*/])(?:[^/\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+\/[a-z]*`,
  ].join("|"),
  "g",
);
/** A template with another in it, of which these patterns know too little. */
const NESTED = /`[^`]*\$\{[^}`]*`/;

/**
 * What a browser needs of a script that the compiler has made: no space that nothing needs. Nothing
 * in it goes past its line but code; `npm run check` sees to it.
 *
 * @param {string} script
 * @returns {string}
 */
export function squeeze(script) {
  const code = (/** @type {string} */ text) =>
    text.replace(/\s*([{}()[\],;<>=*/?:&|!%])\s*/g, "$1").replace(/(\w) \+ (\w)/g, "$1+$2");
  return script.split("\n").map((line) => {
    if (NESTED.test(line)) return line.trim();
    const quoted = line.match(QUOTED) ?? [];
    const parts = line.split(QUOTED);
    return parts.map((part, at) => code(part) + (quoted[at] ?? "")).join("").trim();
  }).filter((line) => line !== "").map((line, at, all) =>
    /[,;]$/.test(line) && /^[}\])]/.test(all[at + 1] ?? "") ? line.slice(0, -1)
      : line + (/[{,;([&|?:=>]$/.test(line) ? "" : "\n")).join("");
}

/**
 * Makes `dist/console` of what the compiler has made for browsers: scripts without what nothing
 * needs, the style sheet with the pages' colours, and each file beside itself as Brotli and as gzip
 * have it.
 *
 * @param {string} root
 */
function packConsole(root) {
  const [compiled, packed] = [join(root, "dist/.browser/console"), join(root, "dist/console")];
  const palette = readFileSync(join(root, "dist/api/pages/palette.js"), "utf8");
  const colours = [...palette.matchAll(/^\s*(\w+): \{ light: "(.*?)", dark: "(.*?)" \}/gm)]
    .map(([, role = "", light, dark]) => {
      const name = role.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return `--${name}:light-dark(${light},${dark});`;
    });
  const style = readFileSync(join(root, "src/console/console.css"), "utf8")
    .replace(/\/\*.*?\*\//gs, "").replace(/\s*([{};])\s*/g, "$1").replaceAll(";}", "}")
    .replace(/([{;][\w-]+): /g, "$1:").replaceAll(", ", ",");
  const files = new Map([["console.css", `:root{${colours.join("")}}\n${style}`]]);
  for (const name of readdirSync(compiled, { recursive: true }).map(String)) {
    if (name.endsWith(".js")) files.set(name, squeeze(readFileSync(join(compiled, name), "utf8")));
  }
  for (const [name, text] of files) {
    const bytes = Buffer.from(text.replace(/^\s+/gm, ""));
    mkdirSync(dirname(join(packed, name)), { recursive: true });
    writeFileSync(join(packed, name), bytes);
    writeFileSync(join(packed, `${name}.br`), brotliCompressSync(bytes));
    writeFileSync(join(packed, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  }
  rmSync(dirname(compiled), { recursive: true });
}

/**
 * The text of `dist/version.js`.
 *
 * @param {string} root
 * @param {string} revision
 * @returns {string}
 */
function versionModule(root, revision) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return [
    `export const version = ${JSON.stringify(version)};`,
    `export const revision = ${JSON.stringify(revision)};`,
    "",
  ].join("\n");
}

/**
 * GATEPOST_REVISION, else the short commit, else UNKNOWN.
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
  if (!existsSync(join(root, ".git"))) return UNKNOWN;
  try {
    const args = ["rev-parse", "--short", "HEAD"];
    return execFileSync("git", args, { cwd: root, stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  } catch {
    return UNKNOWN; // no git here, no commit yet, or a clone of another user
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
