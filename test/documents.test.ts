import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { listDocuments } from "../scripts/docs.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { VARIABLES } from "../src/config.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const exists = (path: string) => existsSync(join(root, path));
/** Every document's text by its path. */
const documents = new Map(listDocuments(root).map((path) => [path, read(path)]));
const everything = [...documents.values()].join("\n");

test("the README is short", () => {
  assert.ok(read("README.md").split("\n").length <= 250);
});

test("every file of src that the threat model names exists", () => {
  const text = read("src/api/authorization/DESIGN.md");
  const table = /\| threat \|[^]*?\n\n/.exec(text)?.[0] ?? "";
  const paths = [...table.matchAll(/`([a-z]+\/[a-z_/]+)`/g)].map(([, path = ""]) => path);
  assert.ok(paths.length > 40);
  for (const path of paths) assert.ok(exists(`src/${path}.ts`) || exists(`src/${path}`), path);
});

test("every source file that a document names exists: beside it, in src or at the root", () => {
  for (const [document, text] of documents) {
    for (const [, path = ""] of text.matchAll(/`((?!endpoints\/)\w[\w./-]*\.(?:ts|mjs))`/g)) {
      const places = [dirname(document), "src", "."].map((folder) => join(folder, path));
      assert.ok(places.some(exists), `${document}: ${path}`);
    }
  }
});

test("every folder and file in the README's pictures exists", () => {
  const [, pictures = ""] = /^## How it works$([^]*?)^## /m.exec(read("README.md")) ?? [];
  const paths = [...pictures.matchAll(/^[a-z]+\/[a-z_/]*/gm)].map(([path]) => path);
  assert.ok(paths.length > 8);
  for (const path of paths) assert.ok(globSync(`src/${path}*`, { cwd: root }).length > 0, path);
});

test("every command that a document shows exists", () => {
  const known = COMMANDS.map(({ words }) => words.join(" "));
  const shown = [...everything.matchAll(/(?:^|`|then )gatepost ([a-z][a-z-]*(?: [a-z-]+)?)/gm)]
    .map(([, words = ""]) => words);
  assert.ok(shown.length > 30);
  for (const words of shown) {
    assert.ok(known.includes(words) || known.includes(words.split(" ")[0] ?? ""), words);
  }
});

test("the handbook's section on the log has every warning and error of it", () => {
  const [, log = ""] = /^## Log$([^]*?)^## /m.exec(read("src/cli/OPERATIONS.md")) ?? [];
  const source = globSync("src/**/*.ts", { cwd: root }).map(read).join("");
  const lines = [...source.matchAll(/\b(?:log\??\.(?:warn|error)|miss)\([^"`;]*?"([^"]+)"/g),
    ...source.matchAll(/const WARNING = "([^"]+)"/g)].map(([, line = ""]) => line);
  assert.ok(lines.length > 30);
  for (const line of new Set(lines)) assert.ok(log.includes(`\`${line}\``), line);
});

test("every npm script that a document shows exists", () => {
  const { scripts } = JSON.parse(read("package.json"));
  const shown = [...everything.matchAll(/\bnpm run (?:--silent )?([\w:]+)/g)];
  assert.ok(shown.length > 10);
  for (const [, name = ""] of shown) assert.ok(name in scripts, name);
});

test("every variable that a document names exists", () => {
  const known = new Set(VARIABLES.map(({ name }) => name));
  for (const [name] of everything.matchAll(/\bGATEPOST_[A-Z_]*[A-Z]\b/g)) {
    const isOfTests = /^GATEPOST_(SEED|REVISION|TEST_ENGINE|TEST_RQLITED)$/.test(name);
    assert.ok(known.has(name.replace(/_FILE$/, "")) || isOfTests, name);
  }
});

test("the nginx recipes set X-Forwarded-For, which a client could set otherwise", () => {
  const recipes = [...everything.matchAll(/^```nginx\n([^]*?)^```/gm)].map(([, text = ""]) => text);
  const locations = recipes.flatMap((text) => text.match(/^location [^]*?^}/gm) ?? []);
  const ours = locations.filter((text) => /proxy_pass http:\/\/(gatepost|[\d.]+:8080)/.test(text));
  assert.equal(ours.length, 2);
  for (const text of ours) assert.match(text, /X-Forwarded-For \$proxy_add_x_forwarded_for;/);
});

test("every problem code is in the API's document, with its status", () => {
  const [, table = ""] = /^\| status \| code \|$([^]*?)^$/m.exec(read("src/api/README.md")) ?? [];
  const rows = [...table.matchAll(/^\| ([\d, ]+) \| (.*) \|$/gm)];
  const documented = rows.flatMap(([, statuses = "", codes = ""]) =>
    [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code = ""]) => ({ statuses, code }))
  );
  assert.ok(documented.length > 20);
  const pages = /page|verify/; // which only people see
  const files = globSync("src/**/*.ts", { cwd: root }).filter((file) => !pages.test(file));
  const sources = files.map(read).join("\n");
  for (const { code } of documented) assert.ok(sources.includes(`"${code}"`), code);
  const thrown = sources.matchAll(/(?:Problem\(|\[)([45]\d\d), "([a-z_]+)"/g);
  for (const [, status = "", code = ""] of thrown) {
    const row = documented.find((each) => each.code === code && each.statuses.includes(status));
    assert.ok(row, code);
  }
});

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)]
    .map(([, heading = ""]) => heading.toLowerCase().replace(/[^\w\s-]/g, "").replaceAll(" ", "-"));
}

for (const [path, text] of documents) {
  test(`every link of ${path} leads to a file, and to a heading in it`, () => {
    const prose = text.replace(/^```[^]*?^```$/gm, "");
    for (const [, file = "", anchor] of prose.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const target = file === "" ? path : join(dirname(path), file);
      assert.ok(exists(target), file);
      if (anchor !== undefined) assert.ok(anchorsOf(read(target)).includes(anchor), anchor);
    }
  });
}
