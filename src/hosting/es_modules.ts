import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

/** Folders, as URLs with a slash at the end. */
const folders = new Set<string>();

/**
 * Loads all `.ts`, `.mts`, `.js` and `.mjs` below a folder, given by its real path, as ES modules.
 * A package.json above does not matter: it is another program's. node_modules is left alone.
 */
export function loadAsEsModules(folder: string): void {
  if (folders.size === 0) registerHooks({ load });
  folders.add(pathToFileURL(`${folder}/`).href);
}

const load: NonNullable<Parameters<typeof registerHooks>[0]["load"]> = (url, context, next) => {
  const folder = folders.values().find((each) => url.startsWith(each));
  const below = folder === undefined ? "" : url.slice(folder.length).replace(/[?#].*/, "");
  const [, kind] = /\.m?([jt]s)$/.exec(below) ?? [];
  if (kind === undefined || /(^|\/)node_modules\//.test(below)) return next(url, context);
  const format = kind === "ts" ? "module-typescript" : "module";
  return next(url, { ...context, format });
};
