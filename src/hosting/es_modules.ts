import { realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

/** Folders, as URLs with a slash at the end. */
const folders = new Set<string>();

/**
 * Makes ES modules of all `.ts`, `.mts`, `.js` and `.mjs` in a file's folder and below it, whatever
 * a package.json above says, which is another program's. Packages in node_modules keep their type.
 * Where the file, which must exist, is a link, the folder is that of its target.
 */
export function loadAsEsModules(file: string): void {
  if (folders.size === 0) registerHooks({ load });
  folders.add(pathToFileURL(`${dirname(realpathSync(file))}/`).href);
}

const load: NonNullable<Parameters<typeof registerHooks>[0]["load"]> = (url, context, next) => {
  const folder = folders.values().find((each) => url.startsWith(each));
  const below = folder === undefined ? "" : url.slice(folder.length).replace(/[?#].*/, "");
  const [, kind] = /\.m?([jt]s)$/.exec(below) ?? [];
  if (kind === undefined || /(^|\/)node_modules\//.test(below)) return next(url, context);
  const format = kind === "ts" ? "module-typescript" : "module";
  return next(url, { ...context, format });
};
