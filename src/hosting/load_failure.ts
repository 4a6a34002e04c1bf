import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";

/** What to do, by the engine's message. */
const HINTS = [
  [
    /(?:package|module) 'gatepost'/,
    '; write "import type", and gatepost/testing in .test.ts files alone',
  ],
  [/an export named '/, '; of a type, write "import type"'],
  [/find module '.*(?:\/[^./]+|\.js)' imported/, "; name the file with the extension that it has"],
  [/ES module scope/, "; CommonJS goes into .cjs files"],
  [/--allow-fs-read/, "; GATEPOST_ENDPOINTS must name a folder that holds this too"],
] as const;

/** Returns what went wrong, in a few lines, and where in the code if the engine says so. */
export function describeLoadFailure(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `threw ${String(error)} while loading`;
    const at = placeOf(error.stack ?? "") ?? placeOf(stackOfParser(error));
    const hint = HINTS.find(([said]) => said.test(error.message))?.[1] ?? "";
    const denied = "permission" in error && "resource" in error
      ? ` (${String(error.permission)}: ${String(error.resource)})` // ERR_ACCESS_DENIED
      : "";
    return `${error.name}: ${error.message}${denied}${hint}${at === undefined ? "" : ` (${at})`}`;
  } catch { // a member of the error is no text, or throws
    return "threw a value that cannot be described";
  }
}

/**
 * Returns the stack of an error that was found before any code ran. The engine knows the place in
 * JavaScript, and adds it when a script throws the error (`displayErrors` of node:vm).
 */
function stackOfParser(error: Error): string {
  try {
    runInNewContext("throw error", { error }, ""); // without a name the script is not the place
  } catch {
    // The error's stack has the place now.
  }
  return error.stack ?? "";
}

/** Returns `file:line` from the head of a syntax error's stack, or the first frame in a file. */
function placeOf(stack: string): string | undefined {
  const head = /^((?:file:\/)?\/.*):(\d+)\n/.exec(stack);
  const frames = stack.matchAll(/^ +at (?:.*\()?(file:\/\/.+):(\d+):\d+\)?$/gm);
  const here = new URL("./", import.meta.url).href; // the import and its hook do not help
  const [, url, line] = head ?? frames.find(([, url = ""]) => !url.startsWith(here)) ?? [];
  return url && `${url.startsWith("file:") ? fileURLToPath(url) : url}:${line}`;
}
