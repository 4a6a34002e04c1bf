import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { checkLayers, checkTree, listNodeModules } from "../../scripts/check_layers.ts";

const scratch = mkdtempSync(join(tmpdir(), "gatepost-layers-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** A small tree that keeps every rule; each case below adds one file to it. */
const CLEAN: Record<string, string> = {
  "version.ts": `import { readFileSync } from "node:fs";\nexport const version = "1";\n`,
  "mod.ts": `export type { Clock } from "./base/clock.ts";\n`,
  "config.ts": `import { now } from "./base/clock.ts";\nexport const config = { now };\n`,
  "app.ts": [
    `import { config } from "./config.ts";`,
    `import { open } from "./database/open.ts";`,
    `import { send } from "./delivery/callback.ts";`,
    `export const app = [config, open, send, fetch];`,
  ].join("\n"),
  "server.ts": `import { app } from "./app.ts";\nconsole.log(app, process.env, process.argv);\n`,
  "base/clock.ts": `export type Clock = () => number;\nexport const now = 1;\n`,
  "base/html.ts": "export const escape = (text: string) => `<p>${text}</p>`;\n",
  "oauth/scope.ts": `import { now } from "../base/clock.ts";\n`,
  "event/event.ts": [
    `import { hash } from "node:crypto";`,
    `import type { Clock } from "../base/clock.ts";`,
  ].join("\n"),
  "database/open.ts": [
    `import { DatabaseSync } from "node:sqlite";`,
    `export const open = "SELECT 1";`,
  ].join("\n"),
  "http/node_http.ts": `import { createServer } from "node:http";\n`,
  "api/pages/login.ts": "export const page = (name: string) => `<h1>${name}</h1>`;\n",
  "hosting/load.ts": `export const load = (path: string) => import(path);\n`,
  "outbound/egress.ts": `export const send = (url: string) => fetch(url);\n`,
  "delivery/callback.ts": `export { send } from "../outbound/egress.ts";\n`,
};

function writeTree(files: Record<string, string>): string {
  const folder = mkdtempSync(join(scratch, "tree-"));
  for (const [file, source] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), source);
  }
  return folder;
}

function errorsOf(files: Record<string, string>): string[] {
  const errors = checkLayers(writeTree({ ...CLEAN, ...files }));
  return errors.map(({ file, line, rule }) => `${file}:${line} ${rule}`);
}

test("checkLayers() accepts a tree that keeps every rule", () => {
  assert.deepEqual(errorsOf({}), []);
});

const LONG = "export const one = 1;\n".repeat(301);
const WIDE = `// ${"é".repeat(98)}`;

// file, source, line of the error, what its rule says
const FORBIDDEN: [string, string, number, RegExp][] = [
  ["base/x.ts", `import { a } from "../oauth/scope.ts";`, 1, /^layer: base may not import oauth/],
  ["base/x.ts", `export * from "../database/open.ts";`, 1, /^layer: base may not import database/],
  ["base/x.ts", `const a = await import("../delivery/callback.ts");`, 1, /^layer: base may not/],
  ["base/x.ts", `let a: import("../event/event.ts").Event;`, 1, /^layer: base may not/],
  ["base/x.ts", `\n// import\nimport "../app.ts";`, 3, /^layer: base may not import app/],
  ["oauth/x.ts", `import type { A } from "../event/event.ts";`, 1, /^layer: oauth may not/],
  ["event/x.ts", `export { a } from "../oauth/scope.ts";`, 1, /^layer: event may not/],
  ["oauth/x.ts", `import { a } from "../database/open.ts";`, 1, /^layer: oauth may not/],
  ["store/x.ts", `import { a } from "../http/node_http.ts";`, 1, /^layer: store may not/],
  ["http/x.ts", `import { a } from "../hosting/load.ts";`, 1, /^layer: http may not/],
  ["http/x.ts", `import { a } from "../delivery/callback.ts";`, 1, /^layer: http may not/],
  ["hosting/x.ts", `import { a } from "../delivery/callback.ts";`, 1, /^layer: hosting may not/],
  ["job/x.ts", `import { a } from "../http/node_http.ts";`, 1, /^layer: job may not import http/],
  ["job/x.ts", `import { a } from "../hosting/load.ts";`, 1, /^layer: job may not import hosting/],
  ["http/x.ts", `import { a } from "../config.ts";`, 1, /^layer: http may not import config/],
  ["config.ts", `import { a } from "./database/open.ts";`, 1, /^layer: config may not import da/],
  ["mod.ts", `export type { A } from "./database/open.ts";`, 1, /^layer: mod may not import data/],
  ["mod.ts", `export { now } from "./base/clock.ts";`, 1, /^types: mod imports types alone/],
  ["cli.ts", `import "./server.ts";`, 1, /^layer: cli may not import server/],
  ["http/x.ts", `import express from "express";`, 1, /neither relative nor node:/],
  ["http/x.ts", `import { a } from "fs";`, 1, /neither relative nor node:/],
  ["http/x.ts", `import { a } from "../../test/a.ts";`, 1, /no module of this tree/],
  ["http/x.ts", `import { a } from "../base/clock";`, 1, /no module of this tree/],
  ["http/x.ts", `const a = import("node:" + name);`, 1, /computed specifier/],
  ["http/x.ts", "const a = import(`node:vm`);", 1, /computed specifier/],
  ["http/x.ts", `import { DatabaseSync } from "node:sqlite";`, 1, /may not touch node:sqlite/],
  ["http/x.ts", `import { request } from "node:http";`, 1, /may not touch node:http/],
  ["oauth/x.ts", `import { readFileSync } from "node:fs";`, 1, /may not touch node:fs/],
  ["oauth/x.ts", `const fs = process.getBuiltinModule("node:fs");`, 1, /may not touch node:fs/],
  ["oauth/x.ts", `const fs = process.getBuiltinModule("fs");`, 1, /neither relative nor node:/],
  ["http/x.ts", `const a = process.getBuiltinModule(name);`, 1, /computed specifier/],
  ["http/x.ts", `const { getBuiltinModule: a } = globalThis;`, 1, /computed specifier/],
  ["event/x.ts", `import { a } from "node:fs/promises";`, 1, /may not touch node:fs\/promises/],
  ["hosting/x.ts", `import {\n  a as b,\n  type C,\n} from "node:vm";`, 1, /may not touch node:vm/],
  ["base/x.ts", `const a = createServer();`, 1, /^network: .* alone listens/],
  ["base/x.ts", `const a = process.env["HOME"];`, 1, /^environment: process\.env/],
  ["app.ts", `const { env } = process;`, 1, /^environment: process as a value/],
  ["app.ts", `const a = process["env"];`, 1, /^environment: process as a value/],
  ["app.ts", `const a = globalThis.process.env;`, 1, /^environment: process\.env/],
  ["job/x.ts", "const a = `${await fetch(url)}`;", 1, /^network: fetch is called by/],
  ["http/x.ts", `const a = globalThis.fetch;`, 1, /^network: the global fetch/],
  ["job/x.ts", `const a = "UPDATE delivery SET status = ?";`, 1, /^sql: belongs to database/],
  ["app.ts", "\nconst a = `\n  DELETE FROM user`;", 2, /^sql: belongs to database/],
  ["http/x.ts", `const a = "<!DOCTYPE html>";`, 1, /^html: belongs to api\/pages/],
  ["job/x.ts", "const a = `${name}<p class='x'>`;", 1, /^html: belongs to api\/pages/],
  ["base/x.ts", `export default 1;`, 1, /^default export/],
  ["base/x.ts", `const a = 1;\nexport { a as default };`, 2, /^default export/],
  ["http/x.ts", `\nparser.onIncoming = () => PARSER_ERROR;`, 2, /^function: give it a name/],
  ["http/x.ts", `  this.#stop = (problem) => {`, 1, /^function: give it a name/],
  ["http/x.ts", `dispatch.flush = async (): Promise<void> => {`, 1, /^function: give it a name/],
  ["http/x.ts", `    a.b.c ??= async function () {`, 1, /^function: give it a name/],
  ["http/x.ts", `this.once = value => value;`, 1, /^function: give it a name/],
  ["base/x.ts", `function f() {\n${"  let a = 1;\n".repeat(4)}}\n`, 5, /^variables: 4 that change/],
  ["base/x.ts", LONG, 301, /^size: 301 lines/],
  ["base/x.ts", `\n${WIDE}`, 2, /^width: 101 columns, more than 100/],
  ["base/index.ts", "", 1, /^name: index\.ts/],
  ["http/utils.ts", "", 1, /^name: utils\.ts/],
  ["job/helpers.ts", "", 1, /^name: helpers\.ts/],
  ["oauth/types.ts", "", 1, /^name: types\.ts/],
  ["oauth/clientAuth.ts", "", 1, /^name: .* not lower_snake_case/],
  ["oauth/legacy.js", "", 1, /^name: .* not lower_snake_case/],
  ["extra/x.ts", "", 1, /^place: extra has no layer/],
];

for (const [file, source, line, rule] of FORBIDDEN) {
  const shown = source.length > 70 ? `${source.length} characters` : JSON.stringify(source);
  test(`checkLayers() refuses ${shown} in ${file}`, () => {
    const errors = checkLayers(writeTree({ ...CLEAN, [file]: source }));
    assert.equal(errors.length, 1, JSON.stringify(errors));
    assert.equal(errors[0]?.file, file);
    assert.equal(errors[0]?.line, line);
    assert.match(errors[0]?.rule ?? "", rule);
  });
}

const HARMLESS = [
  `const stop = (problem: Problem): void => {\n};\nthis.#stop = stop;`,
  `dispatch.flush = flush;\nthis.end = of((a) => a);\nconst x = { on: (a) => a };`,
  `// import { a } from "express";`,
  `/* fetch(url); process.env */`,
  `const a = 'import { a } from "express"';`,
  "const a = `import(\"express\") ${1} fetch(url) process.env`;",
  `const a = "SELECTED by its user";`,
  `const a = "DELETE";`,
  `const a = "app add NAME --url <url>";`,
  `const a = /["'\`]<p>/.test(b) ? 1 / 2 : /[/]"/;`,
  `const a = import.meta.dirname;`,
  `const a = options.fetch(url);`,
  `type Fetch = typeof fetch;`,
  `const a = { import: 1, default: 2, process: 3 };`,
  `switch (a) { default: break; }`,
  `export const from = "express";`,
  `export { now } from "../base/clock.ts";`,
  `export type { Clock } from "../base/clock.ts";`,
  WIDE.slice(0, -1),
];

for (const source of HARMLESS) {
  test(`checkLayers() accepts ${JSON.stringify(source)}`, () => {
    assert.deepEqual(errorsOf({ "http/x.ts": source }), []);
  });
}

test("checkLayers() finds a cycle and names its files", () => {
  const errors = errorsOf({
    "base/a.ts": `import { b } from "./b.ts";`,
    "base/b.ts": `import { c } from "./c.ts";`,
    "base/c.ts": `\nimport { a } from "./a.ts";`,
  });
  assert.deepEqual(errors, ["base/c.ts:2 cycle: base/a.ts > base/b.ts > base/c.ts > base/a.ts"]);
});

test("checkTree() finds a cycle and wide lines in a tree without layers, and nothing else", () => {
  const tree = {
    "bench/a.mjs": `import "express";\nimport { b } from "./b.ts";`,
    "bench/b.ts": `import { a } from "./a.mjs";\n${WIDE}`,
    "bench/index.ts": `import { c } from "../../src/app.ts";\n${LONG}`,
    "README.md": WIDE,
  };
  const errors = checkTree(writeTree(tree));
  assert.deepEqual(errors.map(({ file, line, rule }) => `${file}:${line} ${rule}`), [
    "bench/b.ts:2 width: 101 columns, more than 100",
    "bench/b.ts:1 cycle: bench/a.mjs > bench/b.ts > bench/a.mjs",
  ]);
});

test("checkLayers() reads on after a template with nested braces", () => {
  const source = "const a = `${{ b: `}${1}` }} \\` ${c}`;\nimport { d } from \"express\";\n";
  assert.deepEqual(errorsOf({ "http/x.ts": source }), [
    `http/x.ts:2 import: "express" is neither relative nor node:`,
  ]);
});

test("listNodeModules() groups the built-ins that are used by folder", () => {
  const used = listNodeModules(writeTree(CLEAN));
  assert.deepEqual(used.get("event/"), ["crypto"]);
  assert.deepEqual(used.get("database/"), ["sqlite"]);
  assert.deepEqual(used.get("version.ts"), ["fs"]);
  assert.deepEqual(used.get("oauth/"), []);
});

const script = join(import.meta.dirname, "../../scripts/check_layers.ts");

function runScript(...args: string[]): { status: number | null; stdout: string } {
  return spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
}

test("check_layers.ts prints a line per error and exits 1", () => {
  const folder = writeTree({ "base/x.ts": `\nimport "express";\nexport default 1;\n` });
  const { status, stdout } = runScript(folder);
  assert.equal(status, 1);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    `${join(folder, "base/x.ts")}:3  default export`,
    `${join(folder, "base/x.ts")}:2  import: "express" is neither relative nor node:`,
  ]);
});

test("check_layers.ts prints nothing and exits 0 where every rule is kept", () => {
  assert.deepEqual(runScript(writeTree(CLEAN)).stdout, "");
  assert.equal(runScript(writeTree(CLEAN)).status, 0);
});

test("check_layers.ts --list prints a row per folder", () => {
  const { status, stdout } = runScript(writeTree(CLEAN), "--list");
  assert.equal(status, 0);
  assert.match(stdout, /^database\/ +sqlite$/m);
  assert.match(stdout, /^oauth\/ +-$/m);
});
