import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { loadEndpoints } from "../../src/hosting/load.ts";
import { writeFolder } from "../helpers/folder.ts";
import { endpoint, errorsOf, FIXTURES, loadApart } from "./load_stage.ts";

test("a module that ends the process while it loads is named, with exit code 1", async (t) => {
  const folder = await writeFolder(t, {
    "a.js": endpoint(""),
    "b.js": "await 1; process.exit(0);",
  });
  const said = `${join(folder, "b.js")}: the process ended while this was loading\n`;
  assert.deepEqual(await loadApart(folder), [1, "", said]);
  const listening = process.listenerCount("exit");
  await loadEndpoints(FIXTURES);
  assert.equal(process.listenerCount("exit"), listening);
});

test("a folder, link or module that cannot be read is an error", async (t) => {
  const folder = await writeFolder(t, { "file.txt": "" });
  await symlink("nowhere.ts", join(folder, "dead.ts"));
  for (const path of [join(folder, "nowhere"), join(folder, "file.txt"), folder]) {
    const errors = await errorsOf(path);
    assert.equal(errors.length, 1);
    assert.match(errors.join(), /^\S+: cannot be read: (ENOENT|ENOTDIR)/);
    assert.equal(errors.join().endsWith("(GATEPOST_ENDPOINTS)"), path !== folder);
  }
});

test("a module that does not load is an error with its file, message and place", async (t) => {
  const cases: [name: string, source: string, error: RegExp][] = [
    ["a.mjs", "\nexport const x = {", /^a\.mjs: SyntaxError: .* end of input \(a\.mjs:2\)$/],
    ["a b.mjs", "x x", /^a b\.mjs: SyntaxError: Unexpected identifier 'x' \(a b\.mjs:1\)$/],
    ["a.ts", "import './.bad.mjs';", /^a\.ts: SyntaxError: .*token ';' \(\.bad\.mjs:2\)$/],
    ["a.ts", "import x from './.a.txt' with { type: 'json' }", /^a\.ts: \w*Error: [^(]*$/],
    ["a.ts", "\nconst x: number = 1, x = 2;", /^a\.ts: SyntaxError: .* declared \(a\.ts:2\)$/],
    ["a.ts", "\nexport const x: = 1;", /^a\.ts: SyntaxError: Unexpected token.* \(a\.ts:2\)$/],
    ["a.ts", "enum A {}", /^a\.ts: SyntaxError: .*enum.* \(a\.ts:1\)$/],
    ["\u00fc b.ts", "enum A {}", /^\u00fc b\.ts: SyntaxError: .*enum.* \(\u00fc b\.ts:1\)$/],
    ["a.js", "\n\nthrow new Error('boom');export {}", /^a\.js: Error: boom \(a\.js:3\)$/],
    ["a.mjs", "throw new Error('refused ::1:5432')", /: Error: refused ::1:5432 \(a\.mjs:1\)$/],
    ["a.js", "throw 'text';export {}", /^a\.js: threw text while loading$/],
    ["a.mjs", "throw Object.create(null)", /^a\.mjs: threw a value that cannot be described$/],
    ["a.mjs", "throw Object.assign(Error('x'), { stack: 1 })", /^a\.mjs: threw a value /],
    ["a.js", "module.exports = {};", /^a\.js: .*module is not defined.* \(a\.js:1\)$/s],
    ["a.mjs", "import './nowhere.mjs';", /^a\.mjs: Error: Cannot find module .*nowhere/],
    ["a.ts", "import { x } from './a.ts';", /^a\.ts: SyntaxError: .*'x'; of a type, .*type" \(/],
    ["a.ts", "import { Endpoint } from 'gatepost'; export { Endpoint };", /write "import type"/],
    ["a.mjs", "await new Promise(() => {});", /^a\.mjs: its top-level await took over 250 ms$/],
    ["a.js", "require('x'); export {};", /: ReferenceError.*; CommonJS goes into \.cjs files \(/],
    ["a.ts", "import './b'; import './c.js'", /; name the file with the extension that it has$/],
    ["a.ts", "import './c.js'", /; name the file with the extension that it has$/],
    ["a.ts", "import 'gatepost/testing'", / and gatepost\/testing in \.test\.ts files alone$/],
    ["a.ts", "import './.a.json'", /import attribute[^(]*$/],
  ];
  for (const [name, source, error] of cases) {
    const files = { [name]: source, ".a.json": "{}", ".a.txt": "{", ".bad.mjs": "\nlet x = ;" };
    const errors = await errorsOf(await writeFolder(t, files), 250);
    assert.equal(errors.length, 1, source);
    assert.match(errors.join(), error, source);
  }
});

test("an import without type is named even if the package is installed", async (t) => {
  const folder = await writeFolder(t, {
    "a.ts": "import { Endpoint } from 'gatepost'; export type E = Endpoint;",
    "node_modules/gatepost/package.json": '{ "type": "module", "main": "mod.js" }',
    "node_modules/gatepost/mod.js": "export {};",
  });
  assert.match((await errorsOf(folder)).join(), /'Endpoint'; write "import type".* \(a\.ts:1\)$/);
});

test("modules that import one that hangs are waited for together", async (t) => {
  const waiting = Array.from({ length: 8 }, (_, at) => [`${at}.mjs`, 'import "./.hangs.mjs";']);
  const folder = await writeFolder(t, {
    ".hangs.mjs": "await new Promise(() => {});",
    ...Object.fromEntries(waiting),
  });
  const startedMs = performance.now();
  assert.equal((await errorsOf(folder, 500)).length, 8);
  assert.ok(performance.now() - startedMs < 2_500);
});

test("an endpoint with a getter that throws is an error with its file and export", async (t) => {
  const source = `export const x = { method: "GET", get path() { throw Error("no PREFIX"); } };`;
  const errors = await errorsOf(await writeFolder(t, { "a.mjs": source, "b.mjs": "nonsense" }));
  assert.equal(errors.length, 2);
  assert.match(errors.join("\n"), /^a\.mjs, export x: Error: no PREFIX \(a\.mjs:1\)$/m);
});

test("a module that imports a file without permission is named with the file", async (t) => {
  const folder = await writeFolder(t, {
    "in/a.mjs": 'import "../outside.mjs";',
    "outside.mjs": "",
  });
  const allowed = [join(folder, "in"), resolve(import.meta.dirname, "../..")];
  const reads = allowed.map((path) => `--allow-fs-read=${path}`);
  const [, , out] = await loadApart(join(folder, "in"), ["--permission", ...reads]);
  assert.match(out, /a\.mjs: Error: .*restricted.* \(FileSystemRead: \S+\/outside\.mjs\)/);
  assert.match(out, /; GATEPOST_ENDPOINTS must name a folder that holds this too/);
});

test("the errors of all files come together, each with file, export and reason", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": "export const x = {",
    "b/b.mjs": `export const good = { method: "GET", path: "/g", public: true, handle() {} };
      export const one = { method: "GET", path: "/backend", public: true, handle() {} };
      export const two = { method: "GOT", path: "/g", public: true, handle() {} };`,
    "c.mjs": 'export const x = { method: "GET", path: "/g", scope: [], handle() {} };',
  });
  assert.deepEqual((await errorsOf(folder)).map((each) => each.replace(/: .*/, "")), [
    "a.mjs",
    "b/b.mjs, export one",
    "b/b.mjs, export two",
    "c.mjs, export x",
  ]);
});
