import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { METRICS } from "../src/app/metrics.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { VARIABLES } from "../src/config.ts";

const root = new URL("../", import.meta.url);
const readme = readFileSync(new URL("README.md", root), "utf8");

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

test("the README's table has every metric with its type and meaning, and no other", () => {
  const metrics = Object.entries(METRICS);
  const [, table = ""] = /<!-- metrics:begin -->([^]*)<!-- metrics:end -->/.exec(readme) ?? [];
  const named = new Map(table.split("\n").map((row) => [/^\| `(\w+)`/.exec(row)?.[1], row]));
  named.delete(undefined);
  assert.ok(metrics.length > 20);
  for (const [name, { type, help }] of metrics) {
    assert.ok(named.get(name)?.endsWith(`| ${type} | ${help} |`), name);
  }
  assert.deepEqual([...named.keys()].sort(), metrics.map(([name]) => name).sort());
});

test("every file of src that the README names is there", () => {
  const security = /\| threat \|[^]*\*\*Deviation/.exec(readme)?.[0] ?? "";
  const paths = [...security.matchAll(/`([a-z]+\/[a-z_/]+)`/g)].map(([, path = ""]) => path)
    .filter((path) => !path.startsWith("test/"));
  const isThere = (path: string) => existsSync(new URL(path, root));
  assert.ok(paths.length > 40);
  for (const path of paths) assert.ok(isThere(`src/${path}.ts`) || isThere(`src/${path}`), path);
  for (const [path] of readme.matchAll(/\b(?:src|test|scripts)\/[\w/]+\.ts\b/g)) {
    assert.ok(existsSync(new URL(path, root)), path);
  }
});

test("the README tells the size of src as it is", () => {
  const files = globSync("src/**/*.ts", { cwd: root });
  const texts = files.map((file) => readFileSync(new URL(file, root), "utf8").trimEnd().split("\n"));
  const lines = texts.flat();
  const code = lines.filter((line) => !/^\s*(\/\/|\/\*|\*|$)/.test(line));
  const [, told = "", inFiles = "", longest = "", ofCode = ""] =
    /About ([\d,]+) lines in ([\d,]+) files of `src`, none longer than (\d+)[^;]*;\s+([\d,]+) of/
      .exec(readme) ?? [];
  const isNear = (text: string, count: number) =>
    Math.abs(Number(text.replaceAll(",", "")) / count - 1) < 0.03;
  assert.ok(isNear(told, lines.length), `${lines.length} lines`);
  assert.ok(isNear(inFiles, files.length), `${files.length} files`);
  assert.ok(isNear(ofCode, code.length), `${code.length} lines of code`);
  assert.ok(Math.max(...texts.map(({ length }) => length)) <= Number(longest));
});

test("every command that the README shows is one that there is", () => {
  const known = COMMANDS.map(({ words }) => words.join(" "));
  const shown = [...readme.matchAll(/(?:^|`|then )gatepost ([a-z][a-z-]*(?: [a-z-]+)?)/gm)]
    .map(([, words = ""]) => words);
  assert.ok(shown.length > 15);
  for (const words of shown) {
    assert.ok(known.includes(words) || known.includes(words.split(" ")[0] ?? ""), words);
  }
});

test("every link of the README within itself leads to a heading", () => {
  const headings = [...readme.matchAll(/^#+ (.*)$/gm)]
    .map(([, text = ""]) => text.toLowerCase().replace(/[^\w\s-]/g, "").replaceAll(" ", "-"));
  for (const [, anchor = ""] of readme.matchAll(/\]\(#([^)]+)\)/g)) {
    assert.ok(headings.includes(anchor), anchor);
  }
});
