import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { VARIABLES } from "../src/config.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

test("the README's table has every variable with its default and meaning", () => {
  for (const { name, default: fallback, meaning } of VARIABLES) {
    const row = readme.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
    assert.ok(row, `${name} is missing`);
    assert.equal(row.replaceAll("`", ""), `| ${name} | ${fallback} | ${meaning} |`);
  }
});

test("the README's table has no other variable", () => {
  const names = [...readme.matchAll(/^\| `(GATEPOST_\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(names.toSorted(), VARIABLES.map(({ name }) => name).toSorted());
});
