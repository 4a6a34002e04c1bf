import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../base/secret.ts";
import type { ConsoleAssets } from "../api/pages/console_page.ts";

/** Beside this module once it is built; where it runs as TypeScript, what was built last. */
const FOLDERS = ["../console/", "../../dist/console/"]
  .map((path) => join(import.meta.dirname, path));

/** What the page runs. */
const MAIN = "main.js";

/** The forms in which the build has each file. */
const ENCODINGS = { br: ".br", gzip: ".gz", identity: "" } as const;

/** Makes what has the files that browsers load of the console: read when they are first wanted. */
export function createConsoleAssets(): () => ConsoleAssets {
  let loaded: ConsoleAssets | undefined;
  return () => loaded ??= loadConsoleAssets();
}

/** None where it has not been built. */
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

/** A module and all that it imports before it runs; all are beside it. */
function importedBy(folder: string, name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  const script = readFileSync(join(folder, name), "utf8");
  for (const [, next = ""] of script.matchAll(/\bfrom\s*"\.\/([\w.]+)"/g)) {
    importedBy(folder, next, seen);
  }
  return seen;
}
