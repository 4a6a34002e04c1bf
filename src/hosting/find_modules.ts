import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../base/message_of.ts";

const MODULE_FILE = /\.(?:ts|mts|js|mjs)$/;
const OTHER_CODE = /\.(?:cts|cjs|tsx|jsx)$/;
const LEFT_ALONE = /^\.|^node_modules$|\.d\.[cm]?ts$|\.(?:test|spec)\.[cm]?[jt]sx?$/;

/**
 * Returns the paths of all modules (`.ts .mts .js .mjs`) in `folder` and its subfolders, each
 * folder sorted by name. It skips names that start with a dot, `node_modules`, declarations
 * (`.d.ts`) and tests (`.test.ts`, `.spec.ts`). It follows links: mounted configuration consists of
 * them. `onError` gets paths that cannot be read, `onOther` files of code that are no modules.
 */
export async function findModules(
  folder: string,
  onError: (path: string, reason: string) => void,
  onOther: (path: string) => void,
): Promise<string[]> {
  const findIn = async (path: string, above: readonly string[]): Promise<string[]> => {
    const real = await realpath(path);
    // A link to a folder above would lead round for ever. A folder with several names is found
    // under each name, since the hooks around each name apply.
    if (above.includes(real)) return [];
    const files: string[] = [];
    for (const name of (await readdir(path)).sort()) {
      if (!LEFT_ALONE.test(name)) files.push(...await findAt(join(path, name), [...above, real]));
    }
    return files;
  };

  const findAt = async (path: string, above: readonly string[]): Promise<string[]> => {
    const isModule = MODULE_FILE.test(path);
    try {
      const found = await stat(path);
      if (found.isDirectory()) return await findIn(path, above);
      if (found.isFile() && OTHER_CODE.test(path)) onOther(path);
      return isModule && found.isFile() ? [path] : [];
    } catch (error) {
      // Dead links are common, but one with the name of a module was meant to be served.
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (isModule || !isMissing) onError(path, messageOf(error));
      return [];
    }
  };

  try {
    return await findIn(folder, []);
  } catch (error) {
    onError(folder, `${messageOf(error)} (GATEPOST_ENDPOINTS)`);
    return [];
  }
}
