import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const folder = join(import.meta.dirname, "../../dist/console");
const size = (names: readonly string[], ending = "") =>
  names.reduce((sum, name) => sum + readFileSync(join(folder, name + ending)).length, 0);

const scripts = globSync("**/*.js", { cwd: folder });
const parts = scripts.filter((name) => !name.includes("pages/"));

/** Bytes at most, as the build has them and as Brotli does. */
const LIMITS = [
  {
    what: "the overview's script",
    names: [...parts, "pages/overview.js"],
    raw: 60_000,
    brotli: 20_000,
  },
  { what: "the style sheet", names: ["console.css"], raw: 32_000, brotli: 7_000 },
];

for (const { what, names, raw, brotli } of LIMITS) {
  test(`${what} weighs at most ${raw} bytes, ${brotli} of them on the way`, () => {
    assert.ok(names.length > 0 && size(names) > 0);
    assert.ok(size(names) <= raw, `${size(names)} bytes`);
    assert.ok(size(names, ".br") <= brotli, `${size(names, ".br")} bytes`);
  });
}
