import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

type Replaceable = "existsSync" | "linkSync" | "readdirSync" | "rmSync" | "writeFileSync";

/** Replaces a function of node:fs until the test ends or the returned function is called. */
export function replaceFs<Name extends Replaceable>(
  t: TestContext,
  name: Name,
  call: (typeof fs)[Name],
): () => void {
  const { mock } = t.mock.method(fs, name, call);
  const restore = () => {
    mock.restore();
    syncBuiltinESMExports();
  };
  syncBuiltinESMExports();
  t.after(restore);
  return restore;
}
