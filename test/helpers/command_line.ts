import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { createDataFolder, runCli, type RunResult } from "./process.ts";

/** The command line's source: what it runs is counted in the coverage. */
export const CLI_SOURCE = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));

type Env = Readonly<Record<string, string | undefined>>;

export interface CommandLineOptions {
  readonly folder?: string;
  readonly isNew?: boolean;
  readonly env?: Env;
}

/** The command line on a data folder of its own. */
export interface CommandLine {
  readonly folder: string;
  readonly databasePath: string;
  /** Runs `gatepost` with these arguments and nothing on standard input. */
  run(...args: readonly string[]): Promise<RunResult>;
  /** Runs it with more environment, or something on standard input. */
  runWith(
    options: { readonly env?: Env; readonly stdin?: string },
    ...args: readonly string[]
  ): Promise<RunResult>;
  /** Starts it without standard input, to be interrupted; its output can be read. */
  start(...args: readonly string[]): ChildProcess;
}

/**
 * Makes a data folder, which goes with the test, or uses that of a server. Unless it `isNew`, the
 * first command that needs a database finds an empty one.
 */
export async function openCommandLine(
  test: { after(release: () => Promise<void>): void },
  { folder: given, isNew = false, env = {} }: CommandLineOptions = {},
): Promise<CommandLine> {
  const folder = given ?? await createDataFolder();
  if (given === undefined) test.after(() => rm(folder, { recursive: true, force: true }));
  const databasePath = join(folder, "gatepost.db");
  const runWith: CommandLine["runWith"] = async (options, ...args) => {
    const needsDatabase = !isNew && !["check", "backup", "restore"].includes(args[0] ?? "");
    if (needsDatabase && !existsSync(databasePath)) await openSqliteDatabase(databasePath).close();
    return runCli(args, {
      entry: CLI_SOURCE,
      stdin: options.stdin ?? "",
      env: { GATEPOST_DATABASE: databasePath, ...env, ...options.env },
    });
  };
  return {
    folder,
    databasePath,
    runWith,
    run: (...args) => runWith({}, ...args),
    start(...args) {
      const { PATH, HOME, NODE_V8_COVERAGE } = process.env;
      return spawn(process.execPath, [CLI_SOURCE, ...args], {
        env: { PATH, HOME, NODE_V8_COVERAGE, GATEPOST_DATABASE: databasePath, ...env },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 30_000,
      });
    },
  };
}

/** The JSON object that a run printed. */
export function readJson(result: RunResult): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(result.stdout);
  if (typeof value !== "object" || value === null) throw new Error(result.stdout);
  return { ...value };
}

/** The items of a list that a run printed as JSON. */
export function readItems(result: RunResult): readonly Readonly<Record<string, unknown>>[] {
  const { items }: { items: Record<string, unknown>[] } = JSON.parse(result.stdout);
  return items;
}
