/**
 * Puts a fresh clone into order: installs what is missing and, with `--build`, makes `dist` where
 * it is older than `src`. Quick and silent when there is nothing to do. It runs under whatever Node
 * the machine has (20 or newer) and is what puts the pinned one in place.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build, isStale } from "./build.mjs";

const root = join(import.meta.dirname, "..");

/** @typedef {Record<string, { version?: string, optional?: boolean }>} Packages */

/**
 * True if node_modules holds what package-lock.json names. npm keeps its own record of what it
 * installed; every entry is compared with that, and must still have its folder.
 */
function isInstalled() {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const installed = readPackages(record);
  const wanted = Object.entries(readPackages(join(root, "package-lock.json")));
  const complete = wanted.every(([path, { version, optional }]) => {
    if (path === "") return true;
    // Binaries for other platforms are optional and absent.
    if (optional && !installed[path]) return true;
    return installed[path]?.version === version && existsSync(join(root, path));
  });
  return complete && hasPinnedNode();
}

/**
 * The `packages` of a lockfile.
 *
 * @param {string} path
 * @returns {Packages}
 */
function readPackages(path) {
  return JSON.parse(readFileSync(path, "utf8")).packages;
}

/** An install that ran without scripts left the `node` package empty. */
function hasPinnedNode() {
  return existsSync(join(root, "node_modules/node/bin/node"));
}

/** Runs `npm ci`, which shows its progress on a terminal, and its errors. */
function install() {
  console.error("Installing the development tools and the pinned Node.js (once, about 20 s) ...");
  const args = ["ci", "--include=dev", "--include=optional", "--no-ignore-scripts", "--no-dry-run"];
  args.push("--loglevel=error", "--no-audit", "--no-fund");
  const npm = process.env["npm_execpath"];
  // The Node that npm itself runs on, for `npm ci` removes the one in node_modules.
  const node = process.env["npm_node_execpath"] ?? process.execPath;
  const [program, programArgs] = npm ? [node, [npm, ...args]] : ["npm", args];
  const run = spawnSync(program, programArgs, { cwd: root, stdio: ["ignore", 2, 2] });
  if (run.status === 0 && hasPinnedNode()) return true;
  if (run.error) console.error(run.error.message);
  console.error("The installation failed: `npm ci` did not put everything in place (see above).");
  return false;
}

/** Makes `dist` where it is older than `src`. */
function buildIfStale() {
  try {
    if (!isStale(root)) return true;
    console.error("Building dist from src ...");
    return build(root);
  } catch (error) { // the system's, mostly: the folder is another user's
    console.error(`The build failed: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

const ready = (isInstalled() || install()) && (!process.argv.includes("--build") || buildIfStale());
process.exitCode = ready ? 0 : 1;
