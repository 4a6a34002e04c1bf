import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const src = join(import.meta.dirname, "../src");

/** The modules that start to work as soon as they are loaded. */
const PROGRAMS = ["cli.ts", "server.ts"];

// Modules of types alone are imported by `import type` everywhere, so nothing else loads them.
for (const file of globSync("**/*.ts", { cwd: src }).sort()) {
  if (PROGRAMS.includes(file) || file.startsWith("console/")) continue; // which runs in browsers
  test(`${file} loads and exports by name`, async () => {
    const module: object = await import(import.meta.resolve(`../src/${file}`));
    assert.equal("default" in module, false);
  });
}
