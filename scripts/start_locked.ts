/**
 * Starts `dist/server.js` under Node's permission model: network, workers, reading its own code
 * and the endpoint folder, reading and writing the data folder. Nothing else.
 */
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { MEMORY_ENV, MEMORY_FLAGS } from "./memory_settings.ts";

const root = join(import.meta.dirname, "..");

const dist = join(root, "dist");
const data = dirname(resolve(process.env["GATEPOST_DATABASE"] || "data/gatepost.db"));
const endpoints = process.env["GATEPOST_ENDPOINTS"];

/** Each path, and what it leads to where it is a symbolic link: Node asks for either. */
function withTargets(paths: string[]): string[] {
  return [...new Set(paths.flatMap((path) => [path, realpathSync(path)]))];
}

/** Ends with the code for a bad configuration. */
function refuse(reason: string): never {
  console.error(reason);
  process.exit(2);
}

const readable = [dist, join(root, "package.json"), data];
if (endpoints) {
  const folder = resolve(endpoints);
  if (!existsSync(folder)) refuse(`GATEPOST_ENDPOINTS: there is no folder ${folder}`);
  readable.push(folder);
}
// A grant needs a folder that exists.
mkdirSync(data, { recursive: true, mode: 0o700 });
for (const folder of withTargets([data])) {
  const code = [dist, ...(endpoints ? withTargets([resolve(endpoints)]) : [])];
  if (code.some((path) => !relative(folder, path).startsWith(".."))) {
    refuse(`GATEPOST_DATABASE: ${folder} holds code too; put the database into its own folder`);
  }
}

const args = [
  process.execPath,
  ...MEMORY_FLAGS,
  "--permission",
  "--allow-net",
  "--allow-worker",
  // Node warns of these two grants at every start and in every worker. They are meant: README.
  "--disable-warning=PERM0006",
  "--disable-warning=ExperimentalWarning",
  ...withTargets(readable).map((path) => `--allow-fs-read=${path}`),
  ...withTargets([data]).map((path) => `--allow-fs-write=${path}`),
  join(dist, "server.js"),
];
// The server takes this process's place, so that signals reach it.
process.execve?.(process.execPath, args, { ...process.env, ...MEMORY_ENV });
