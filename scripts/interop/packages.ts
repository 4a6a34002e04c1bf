import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Loads an installed package; `Api` is what the caller uses of it. */
export type PackageLoader = <Api>(name: string) => Api;

/** Packages in a folder of their own. */
export interface InstalledPackages {
  readonly load: PackageLoader;
  /** The exact version of an installed package. */
  version(name: string): Promise<string>;
}

const INSTALL_MS = 120_000;

/**
 * Installs packages ("name@version", as npm takes them) into an empty folder, from the registry
 * that npm is set up for, without their scripts. Throws with the output of npm if that fails, or
 * after two minutes.
 */
export async function installPackages(
  folder: string,
  packages: readonly string[],
  signal = AbortSignal.timeout(INSTALL_MS),
): Promise<InstalledPackages> {
  // The folder needs a package.json of its own, or npm looks for one further up.
  const root = join(folder, "package.json");
  await writeFile(root, JSON.stringify({ private: true }));
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  await runNpm([...args, "--loglevel=error", "--prefix", folder, ...packages], folder, signal);
  const require = createRequire(root);
  return {
    load: (name) => require(name),
    async version(name) {
      const file = join(folder, "node_modules", name, "package.json");
      const { version }: { version: string } = JSON.parse(await readFile(file, "utf8"));
      return version;
    },
  };
}

async function runNpm(
  args: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  const [program, programArgs] = npm ? [node ?? process.execPath, [npm, ...args]] : ["npm", args];
  const child = spawn(program, programArgs, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    signal: AbortSignal.any([signal, AbortSignal.timeout(INSTALL_MS)]),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => output += chunk);
  }
  await once(child, "close");
  if (child.exitCode !== 0) throw new Error(`npm could not install packages:\n${output.trim()}`);
}
