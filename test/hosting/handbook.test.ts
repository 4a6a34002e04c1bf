import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { initFiles } from "../../src/cli/init.ts";
import { loadEndpoints } from "../../src/hosting/load.ts";
import { createDataFolder, runNode } from "../helpers/process.ts";

const ROOT = join(import.meta.dirname, "../..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
/** The folder for the modules of each document, as a reader would save them. */
const DOCUMENTS = {
  readme: "README.md",
  handbook: "src/hosting/README.md",
  production: "src/cli/OPERATIONS.md",
};

/** A module of TypeScript, and its file name if it has one. */
const BLOCK = /^```ts\n(?:\/\/ (\S+)\n)?(.*?)^```$/gms;

let folder: string;
let count = 0;
/** Parts of files of this repository, by the paths that they name. */
const quoted: (readonly [path: string, code: string])[] = [];
before(async () => {
  folder = await createDataFolder();
  const files = initFiles();
  for (const name of ["package.json", "tsconfig.json", "gatepost.d.ts"]) {
    await writeFile(join(folder, name), files[name] ?? "");
  }
  for (const [place, document] of Object.entries(DOCUMENTS)) {
    await mkdir(join(folder, place));
    const text = await readFile(join(ROOT, document), "utf8");
    for (const [, name = "orders.ts", code = ""] of text.matchAll(BLOCK)) {
      if (name.includes("/")) quoted.push([name, code]);
      else await writeFile(join(folder, place, name), code);
      count++;
    }
  }
});
after(() => rm(folder, { recursive: true }));

test("every module in the documents compiles as in a folder of `gatepost init`", async () => {
  assert.ok(count >= 6, `${count} modules`);
  const { code, stdout } = await runNode([TSC, "-p", folder]);
  assert.deepEqual([code, stdout], [0, ""]);
});

test("every module in the handbook is loaded by the server", async () => {
  const { endpoints, scopes } = await loadEndpoints(join(folder, "handbook"));
  const paths = endpoints.map(({ pattern }) => pattern.text).sort();
  assert.deepEqual([paths, scopes.length], [["/mcp", "/orders", "/ticks"], 2]);
});

test("every quotation of this repository in the documents is exact", async () => {
  assert.ok(quoted.length > 0);
  for (const [path, code] of quoted) {
    assert.ok((await readFile(join(ROOT, path), "utf8")).includes(code), path);
  }
});
