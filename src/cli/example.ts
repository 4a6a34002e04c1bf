import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../scripts/example");

/**
 * The texts of `scripts/example` by path: endpoint modules that are checked as other code is.
 * `scripts/build.mjs` replaces this module in `dist` with one that holds the texts as literals, so
 * that a package, which has no scripts, knows them too.
 */
export const EXAMPLE: Readonly<Record<string, string>> = Object.fromEntries(
  globSync("**/*.{ts,json}", { cwd: FOLDER })
    .map((path) => [path, readFileSync(join(FOLDER, path), "utf8")]),
);
