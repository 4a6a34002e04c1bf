import module from "node:module"; // a named import would fail where Node is too old
import { join } from "node:path";

const { filename, dirname, url } = import.meta;
const BUILT = new URL("..", url).href;

/**
 * Imports a part of this program at its start. For built code this takes two thirds of the time and
 * less memory. V8's compiled code is kept in a folder beside the code for the next start, and an
 * import of the program's own file skips Node's search. Where the folder cannot be written, as
 * under the permission model, nothing is kept. Node's own NODE_COMPILE_CACHE names another folder,
 * and NODE_DISABLE_COMPILE_CACHE=1 keeps nothing.
 *
 * @param env of threads and of the program that replaces this one: gets the folder's name
 */
export async function importQuickly<Part>(
  importPart: () => Promise<Part>,
  env: NodeJS.ProcessEnv = {},
): Promise<Part> {
  if (filename.endsWith(".ts")) return importPart(); // not built
  const directory = join(dirname, "../.compiled");
  module.enableCompileCache({ directory });
  env["NODE_COMPILE_CACHE"] ??= directory;
  // Node itself would look for links, and for a package.json in each folder above.
  const hooks = module.registerHooks({
    resolve(specifier, { parentURL = "" }, next) {
      if (!specifier.startsWith(".") || !parentURL.startsWith(BUILT)) return next(specifier);
      return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
    },
  });
  try {
    return await importPart();
  } finally {
    hooks.deregister(); // the imports of endpoint modules do not use it
    module.flushCompileCache(); // else Node keeps the cached code in memory until the exit
  }
}
