import module from "node:module"; // by name it would be an error where Node is too old
import { join } from "node:path";

const { filename, dirname, url } = import.meta;
const BUILT = new URL("..", url).href;

/**
 * Imports a part of this program when it starts. As it was built, that takes two thirds of the time
 * and less memory: what V8 has made of the code is kept in a folder beside it for the next start,
 * and where the code imports a file of its own, no other is looked for. Where the folder cannot be
 * written, as under the permission model, nothing is kept. Node's own NODE_COMPILE_CACHE names
 * another folder, and NODE_DISABLE_COMPILE_CACHE=1 keeps nothing.
 *
 * @param env that of threads, and of what takes this process's place: gets the folder's name
 */
export async function importQuickly<Part>(
  importPart: () => Promise<Part>,
  env: NodeJS.ProcessEnv = {},
): Promise<Part> {
  if (filename.endsWith(".ts")) return importPart(); // nothing is built
  const directory = join(dirname, "../.compiled");
  module.enableCompileCache({ directory });
  env["NODE_COMPILE_CACHE"] ??= directory;
  // Node would look for links, and for a package.json in each folder above.
  const hooks = module.registerHooks({
    resolve(specifier, { parentURL = "" }, next) {
      if (!specifier.startsWith(".") || !parentURL.startsWith(BUILT)) return next(specifier);
      return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
    },
  });
  try {
    return await importPart();
  } finally {
    hooks.deregister(); // what endpoint modules import is none of this
    module.flushCompileCache(); // Node would hold what it read or is to keep until the exit
  }
}
