import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";

const folder = join(import.meta.dirname, "../../dist/console");
const size = (names: Iterable<string>, ending = "") =>
  [...names].reduce((sum, name) => sum + readFileSync(join(folder, name + ending)).length, 0);

/** The scripts that a page imports at its start; the set grows while it is walked through. */
function scriptsOf(page: string): Set<string> {
  const scripts = new Set(["main.js", page]);
  for (const name of scripts) {
    const text = readFileSync(join(folder, name), "utf8");
    for (const [, path = ""] of text.matchAll(/\b(?:from|import) ?"(\.[^"]+)"/g)) {
      scripts.add(posix.join(posix.dirname(name), path));
    }
  }
  return scripts;
}

function check(what: string, names: Iterable<string>, raw: number, brotli: number): void {
  test(`${what} has at most ${raw} bytes, compressed at most ${brotli}`, () => {
    const [all, sent] = [size(names), size(names, ".br")];
    assert.ok(all > 0 && all <= raw, `${all} bytes`);
    assert.ok(sent <= brotli, `${sent} bytes`);
  });
}

const pages = readdirSync(join(folder, "pages")).filter((name) => name.endsWith(".js"));
for (const page of pages) check(`pages/${page}`, scriptsOf(`pages/${page}`), 60_000, 20_000);
check("the style sheet", ["console.css"], 32_000, 7_000);
