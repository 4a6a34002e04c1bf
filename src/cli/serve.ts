import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { releaseSignals } from "../base/runtime.ts";
import { type Config, readSecret } from "../config.ts";
import { makeFolder } from "../database/migrate.ts";
import { followLinks } from "../database/own_files.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./failure.ts";

/**
 * The flags of Node. V8 would rather use more memory than collect the garbage of callbacks; the
 * first two flags keep a busy delivery below 200 MB. Without the third, V8 may conclude from one
 * busy moment that exchanges live long, and allocate them in the old generation, where each costs a
 * third more. The last leaves two threads instead of four for garbage collection and compilation.
 */
export const MEMORY_FLAGS = [
  "--max-old-space-size=1024",
  "--max-semi-space-size=12",
  "--no-allocation-site-pretenuring",
  "--v8-pool-size=2",
] as const;

/**
 * The environment of Node. glibc would keep the 19 MiB of a password hash in each thread that has
 * made one; blocks larger than this threshold are given back to the system.
 */
export const MEMORY_ENV = { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=4194304" } as const;

/** `gatepost serve`, which `npm start` and the systemd unit run. */
export const SERVE_COMMAND: Command = {
  words: ["serve"],
  purpose: "Run the server until a signal stops it",
  options: {
    locked: {
      meaning: "use Node's permission model, which allows only network, workers, reading code, " +
        "endpoint modules and secret files, and reading and writing the data folder",
    },
  },
  details: [
    "The server replaces this process, with memory settings that suit it. Flags of Node that " +
      "this process was started with, or that NODE_OPTIONS has, override these settings.",
  ],
  // Not from a pipe, which can be read only once: the server reads the file again.
  readSecret: (path) => statSync(path).isFile() ? readSecret(path) : undefined,
  examples: ["gatepost serve", "GATEPOST_ENDPOINTS=./endpoints gatepost serve --locked"],
  async run({ config, values, host }) {
    const server = join(import.meta.dirname, `../server${extname(import.meta.filename)}`);
    const lock = values.flag("locked") && permissionSettings(config, dirname(server), host.env);
    const flags = [...memoryFlags(host.env), ...host.execArgv, ...lock ? lock.flags : []];
    const args = [host.execPath, ...flags, server];
    await releaseSignals(host); // else a pending signal would be lost with this program
    // The server replaces this process, so signals reach it and its exit code is this process's.
    host.execve?.(host.execPath, args, { ...MEMORY_ENV, ...host.env, ...lock && lock.env });
    throw new UsageError("this system cannot replace a process; start dist/server.js with Node");
  },
};

/** Leaves out flags that NODE_OPTIONS sets, since arguments would override them. */
function memoryFlags({ NODE_OPTIONS = "" }: NodeJS.ProcessEnv): readonly string[] {
  const given = NODE_OPTIONS.replaceAll("_", "-");
  return MEMORY_FLAGS.filter((flag) => !given.includes(flag.replace(/=.*/, "")));
}

/**
 * Returns the arguments and the environment that restrict the server by Node's permission model.
 * Paths are resolved, since Node demands a grant for each link on the way. Throws UsageError if the
 * server could write code, UnusableDatabaseError if the data folder cannot be made.
 */
function permissionSettings(config: Config, code: string, hostEnv: NodeJS.ProcessEnv) {
  const env: NodeJS.ProcessEnv = {};
  const readOnly = [code];
  const writable: string[] = [];
  if (config.endpointsFolder !== undefined) {
    const given = resolve(config.endpointsFolder);
    const folder = existsSync(given) ? realpathSync(given) : given; // the server reports it
    env["GATEPOST_ENDPOINTS"] = folder;
    readOnly.push(folder);
  }
  if (config.database.kind === "file") {
    const file = followLinks(config.database.path);
    makeFolder(file); // a grant needs an existing folder
    const folder = realpathSync(dirname(file));
    env["GATEPOST_DATABASE"] = join(folder, basename(file));
    writable.push(folder);
  }
  const writableCode = writable.find((folder) =>
    readOnly.some((path) => !relative(folder, path).startsWith(".."))
  );
  if (writableCode) {
    const remedy = "put the database into its own folder";
    throw new UsageError(`GATEPOST_DATABASE: ${writableCode} contains code too; ${remedy}`);
  }
  const folders = [...readOnly, ...writable];
  for (const folder of folders) {
    // Node would drop one of two grants if a path begins like the other, and refuse the folder.
    const other = folders.find((path) =>
      path !== folder && path.startsWith(folder) && path[folder.length] !== sep
    );
    if (other) throw new UsageError(`the path ${other} begins with ${folder}: rename one folder`);
  }
  // The configuration has been checked, so each of these is the path of a secret.
  const secrets = Object.entries(hostEnv).flatMap(([name, path = ""]) =>
    /^GATEPOST_\w+_FILE$/.test(name) && path !== "" ? [resolve(path)] : []
  );
  const readable = [...folders, join(code, "../package.json"), ...secrets];
  const flags = [
    "--permission",
    "--allow-net",
    "--allow-worker",
    // Node warns of two of these grants at every start and in every worker; they are intended.
    "--disable-warning=PERM0006",
    "--disable-warning=ExperimentalWarning",
    ...readable.map((path) => `--allow-fs-read=${path}`),
    ...writable.map((path) => `--allow-fs-write=${path}`),
  ];
  return { flags, env };
}
