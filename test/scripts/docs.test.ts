import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fillRegions, listDocuments, toTable } from "../../scripts/docs.ts";

const root = join(import.meta.dirname, "../..");
const REGIONS = new Map([["one", "| 1 |"], ["two", "$& $1"]]);

test("fillRegions() replaces what is in a region, and nothing else", () => {
  const text = "before\n<!-- generated: one -->\nold\n\nolder\n<!-- end -->\nafter\n";

  const filled = fillRegions(text, REGIONS);

  assert.equal(filled, "before\n<!-- generated: one -->\n| 1 |\n<!-- end -->\nafter\n");
  assert.equal(fillRegions(filled, REGIONS), filled);
});

test("fillRegions() fills several regions, and takes their content as it is", () => {
  const text = "<!-- generated: two -->\n<!-- end -->\n<!-- generated: one -->\n<!-- end -->";

  assert.equal(
    fillRegions(text, REGIONS),
    "<!-- generated: two -->\n$& $1\n<!-- end -->\n<!-- generated: one -->\n| 1 |\n<!-- end -->",
  );
});

test("fillRegions() refuses a name that it does not know", () => {
  const unknown = "<!-- generated: three -->\n<!-- end -->";
  assert.throws(() => fillRegions(unknown, REGIONS), /no table called three/);
});

const UNPAIRED = [
  "<!-- generated: one -->\n<!-- generated: two -->\n<!-- end -->",
  "<!-- generated: one -->\n<!-- end -->\n<!-- end -->",
  "<!-- generated: one -->\n<!-- end -->\n<!-- generated: two -->",
  "<!-- end -->",
];

for (const text of UNPAIRED) {
  test(`fillRegions() refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => fillRegions(text, REGIONS), /no beginning or no end/);
  });
}

test("fillRegions() leaves a marker in the middle of a line alone", () => {
  const text = "Write `<!-- generated: one -->` above it.";
  assert.equal(fillRegions(text, REGIONS), text);
});

test("toTable() escapes what would end a cell", () => {
  assert.equal(toTable(["a", "b"], [["x|y", ""]]), "| a | b |\n|---|---|\n| x\\|y |  |");
});

test("each table is in exactly one document", () => {
  const texts = listDocuments(root).map((path) => readFileSync(join(root, path), "utf8"));
  const names = [...texts.join("\n").matchAll(/^<!-- generated: (.+) -->$/gm)]
    .map(([, name = ""]) => name);

  const tables = ["commands", "configuration", "cors", "events", "metrics", "operations", "size"];
  assert.deepEqual(names.sort(), tables);
});
