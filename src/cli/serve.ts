import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { releaseSignals } from "../base/runtime.ts";
import { type Config, readSecret } from "../config.ts";
import { makeFolder } from "../database/migrate.ts";
import { followLinks } from "../database/own_files.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./failure.ts";

/**
 * What Node is started with. V8 prefers to take memory over collecting what callbacks leave behind;
 * the first two keep a full delivery below 200 MB. Without the third V8 may conclude from one busy
 * moment that exchanges live long: each would be allocated among what is seldom collected, and cost
 * a third more. With the last, two threads collect and compile beside those that serve, not four.
 */
export const MEMORY_FLAGS = [
  "--max-old-space-size=1024",
  "--max-semi-space-size=12",
  "--no-allocation-site-pretenuring",
  "--v8-pool-size=2",
] as const;

/**
 * The environment beside them. glibc would keep the 19 MiB of a password's hash in each thread that
 * has made one; blocks that are larger than this go back to the system.
 */
export const MEMORY_ENV = { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=4194304" } as const;

/** `gatepost serve`: what `npm start` runs, and the unit. */
export const SERVE_COMMAND: Command = {
  words: ["serve"],
  purpose: "Serve, until a signal ends it",
  options: {
    locked: {
      meaning: "under Node's permission model: network, workers, reading code, endpoint modules " +
        "and files of secrets, reading and writing the data folder, and nothing else",
    },
  },
  details: [
    "The server takes this process's place, with the settings of memory that suit it. Flags of " +
      "Node that this process was started with, or that NODE_OPTIONS has, win over those.",
  ],
  // The server reads it again, and what a pipe gives is there once.
  readSecret: (path) => statSync(path).isFile() ? readSecret(path) : undefined,
  examples: ["gatepost serve", "GATEPOST_ENDPOINTS=./endpoints gatepost serve --locked"],
  async run({ config, values, host }) {
    const server = join(import.meta.dirname, `../server${extname(import.meta.filename)}`);
    const lock = values.flag("locked") && lockTo(config, dirname(server), host.env);
    const flags = [...memoryFlags(host.env), ...host.execArgv, ...lock ? lock.flags : []];
    const args = [host.execPath, ...flags, server];
    await releaseSignals(host); // one that waited would be lost with this program
    // Signals reach the server itself, and its exit code is this process's.
    host.execve?.(host.execPath, args, { ...MEMORY_ENV, ...host.env, ...lock && lock.env });
    throw new UsageError("this system cannot replace a process; start dist/server.js with Node");
  },
};

/** A flag in the arguments would win over NODE_OPTIONS. */
function memoryFlags({ NODE_OPTIONS = "" }: NodeJS.ProcessEnv): readonly string[] {
  const given = NODE_OPTIONS.replaceAll("_", "-");
  return MEMORY_FLAGS.filter((flag) => !given.includes(flag.replace(/=.*/, "")));
}

/**
 * What the server is started with to be granted what it needs. It is told the folders as they are,
 * since Node wants a grant for each link on the way. Throws UsageError where it could write code,
 * UnusableDatabaseError where the data folder cannot be made.
 */
function lockTo(config: Config, code: string, hostEnv: NodeJS.ProcessEnv) {
  const env: NodeJS.ProcessEnv = {};
  const readOnly = [code];
  const writable: string[] = [];
  if (config.endpointsFolder !== undefined) {
    const given = resolve(config.endpointsFolder);
    const folder = existsSync(given) ? realpathSync(given) : given; // the server says that
    env["GATEPOST_ENDPOINTS"] = folder;
    readOnly.push(folder);
  }
  if (config.database.kind === "file") {
    const file = followLinks(config.database.path);
    makeFolder(file); // a grant needs one that exists
    const folder = realpathSync(dirname(file));
    env["GATEPOST_DATABASE"] = join(folder, basename(file));
    writable.push(folder);
  }
  const mixed = writable.find((folder) =>
    readOnly.some((path) => !relative(folder, path).startsWith(".."))
  );
  if (mixed) {
    const remedy = "put the database into its own folder";
    throw new UsageError(`GATEPOST_DATABASE: ${mixed} holds code too; ${remedy}`);
  }
  const folders = [...readOnly, ...writable];
  for (const folder of folders) {
    // Node would not list it: it takes the grant of the other for one below it.
    const other = folders.find((path) =>
      path !== folder && path.startsWith(folder) && path[folder.length] !== sep
    );
    if (other) throw new UsageError(`${other} begins as ${folder}: rename one of the folders`);
  }
  // The configuration was found good, so each of these is the path of a secret.
  const secrets = Object.entries(hostEnv).flatMap(([name, path = ""]) =>
    /^GATEPOST_\w+_FILE$/.test(name) && path !== "" ? [resolve(path)] : []
  );
  const readable = [...folders, join(code, "../package.json"), ...secrets];
  const flags = [
    "--permission",
    "--allow-net",
    "--allow-worker",
    // Node warns of these two grants at every start and in every worker; they are meant.
    "--disable-warning=PERM0006",
    "--disable-warning=ExperimentalWarning",
    ...readable.map((path) => `--allow-fs-read=${path}`),
    ...writable.map((path) => `--allow-fs-write=${path}`),
  ];
  return { flags, env };
}
