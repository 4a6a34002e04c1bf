import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../base/secret.ts";
import type { ConsoleAssets } from "../api/pages/console_page.ts";

/** The built console lies beside the built module; TypeScript sources use the last build. */
const FOLDERS = ["../console/", "../../dist/console/"]
  .map((path) => join(import.meta.dirname, path));

/** The script that the page runs. */
const MAIN = "main.js";

/** The encodings of each file in the build. */
const ENCODINGS = { br: ".br", gzip: ".gz", identity: "" } as const;

/** Makes the loader of the console's files, which reads them at the first call. */
export function createConsoleAssets(): () => ConsoleAssets {
  let loaded: ConsoleAssets | undefined;
  return () => loaded ??= loadConsoleAssets();
}

/** Returns no files if the console has not been built. */
function loadConsoleAssets(): ConsoleAssets {
  const folder = FOLDERS.find((each) => existsSync(join(each, MAIN))) ?? "";
  const names = folder === "" ? [] : readdirSync(folder, { recursive: true }).map(String)
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => /\.(js|css)$/.test(name)).sort();
  const files = new Map(names.map((name) => [
    name,
    Object.fromEntries(Object.entries(ENCODINGS).map(([encoding, ending]) =>
      [encoding, readFileSync(join(folder, name + ending))])),
  ]));
  const first = names.includes(MAIN) ? [...importedBy(folder, MAIN)] : [];
  const all = [...files].flatMap(([name, { identity }]) => [Buffer.from(name), identity ?? ""]);
  const hash = sha256(Buffer.concat(all.map((part) => Buffer.from(part))));
  return { files, first, version: Buffer.from(hash).toString("hex").slice(0, 16) };
}

/** Returns the names of a module and its static imports; all files lie in one folder. */
function importedBy(folder: string, name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  const script = readFileSync(join(folder, name), "utf8");
  for (const [, next = ""] of script.matchAll(/\bfrom\s*"\.\/([\w.]+)"/g)) {
    importedBy(folder, next, seen);
  }
  return seen;
}
