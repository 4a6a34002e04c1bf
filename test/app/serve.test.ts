import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runNode } from "../helpers/process.ts";

const SERVE = fileURLToPath(new URL("../../src/app/serve.ts", import.meta.url));

/** Whether Node has loaded its fetch after a module was imported. */
async function loadsFetch(specifier: string): Promise<boolean> {
  const program = [
    `await import(${JSON.stringify(specifier)});`,
    `console.log(process.moduleLoadList.some((name) => name.includes("undici")));`,
  ].join("\n");
  const { code, stdout, stderr } = await runNode(["--input-type=module", "--eval", program]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test("the program is imported without fetch, which takes as long to load as half of it", async () => {
  assert.equal(await loadsFetch(SERVE), false);
  assert.equal(await loadsFetch("node:http"), true, "then the test cannot tell any longer");
});
