import assert from "node:assert/strict";
import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import { CLI_SOURCE } from "../helpers/command_line.ts";

const COMPILER = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
const FILES = [
  ".gitignore",
  "endpoints/orders.test.ts",
  "endpoints/orders.ts",
  "gatepost.d.ts",
  "package.json",
  "tsconfig.json",
];

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "gatepost-init-")));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs Node in a folder, without any variable of Gatepost. */
function run(cwd: string, ...args: readonly string[]) {
  const options: SpawnSyncOptionsWithStringEncoding = {
    cwd,
    encoding: "utf8",
    timeout: 60_000,
    env: { PATH: process.env["PATH"] },
  };
  return spawnSync(process.execPath, args, options);
}

function makeFolder(): string {
  return mkdtempSync(join(scratch, "f-"));
}

/** A folder with the files of `gatepost init`. */
function initiate(): string {
  const folder = makeFolder();
  assert.equal(run(folder, CLI_SOURCE, "init").status, 0);
  return folder;
}

const filesIn = (folder: string) =>
  statSync(folder).isFile() ? [] : readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();

test("init writes and lists an example, its test and the compiler's settings", () => {
  const folder = makeFolder();
  const { status, stdout, stderr } = run(folder, CLI_SOURCE, "init", "new/shop");

  assert.equal(status, 0, stderr);
  assert.deepEqual(filesIn(join(folder, "new/shop")), FILES);
  for (const file of FILES) assert.ok(stdout.includes(file), stdout);
  assert.match(stdout, /\n  cd new\/shop\n  \S.* test\n  \S.* dev\n$/);
  const manifest = JSON.parse(readFileSync(join(folder, "new/shop/package.json"), "utf8"));
  assert.equal(manifest.private, true);
});

test("init quotes the name of the folder for the shell in its next steps", () => {
  for (const [name, quoted] of [["my shop", "'my shop'"], ["don't", String.raw`'don'\''t'`]]) {
    const { stdout } = run(makeFolder(), CLI_SOURCE, "init", name ?? "");
    assert.ok(stdout.includes(`\n  cd ${quoted}\n`), stdout);
  }
});

test("init shows its next steps with the command by which it was called", () => {
  const bin = join(makeFolder(), "node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  for (const [folder, gatepost] of [[bin, "npx gatepost"], [makeFolder(), "gatepost"]] as const) {
    symlinkSync(CLI_SOURCE, join(folder, "gatepost"));
    const { stdout } = run(makeFolder(), join(folder, "gatepost"), "init");
    assert.match(stdout, new RegExp(`\n  ${gatepost} test\n  ${gatepost} dev\n$`));
  }
});

test("with --json init prints the folder and its files", () => {
  const folder = makeFolder();
  const { stdout } = run(folder, CLI_SOURCE, "init", "--json");
  const { folder: made, files } = JSON.parse(stdout);
  assert.equal(made, folder);
  assert.deepEqual(files.sort(), FILES);
});

test("the project of init compiles with nothing else installed", () => {
  const folder = initiate();
  const { stdout, status } = run(folder, COMPILER, "--project", folder);
  assert.equal(stdout, "");
  assert.equal(status, 0);
});

test("the project of init names the iterable DOM types for TypeScript before 6", () => {
  const settings = readFileSync(join(initiate(), "tsconfig.json"), "utf8");
  assert.match(settings, /"dom", "dom\.iterable", "dom\.asynciterable"/);
});

test("with the types of init a wrong endpoint, event or call is an error", () => {
  const folder = initiate();
  const source = `
    import type { DefineEndpoint, Endpoint } from "gatepost";
    import { call } from "gatepost/testing";
    const endpoint: DefineEndpoint = (given) => given;
    export const a = endpoint({
      method: "GET", path: "/a", public: true, emits: { "a.b": "x" },
      handle({ dispatch }) { dispatch("a.c", 1); },
    });
    export const b: Endpoint = { method: "FETCH", path: "/b", public: true, handle() {} };
    export const c = call(a, { quary: {} });
  `;
  writeFileSync(join(folder, "endpoints/wrong.ts"), source);
  const { stdout } = run(folder, COMPILER, "--project", folder);
  const found = stdout.matchAll(/wrong\.ts\((\d+),\d+\): error/g);
  assert.deepEqual([...found].map(([, line]) => line), ["7", "9", "10"]);
});

test("check accepts the project of init", () => {
  const folder = initiate();
  const { status, stdout } = spawnSync(process.execPath, [CLI_SOURCE, "check"], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], GATEPOST_ENDPOINTS: "endpoints" },
  });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /POST +\/orders +orders +order\.placed/);
  assert.doesNotMatch(stdout, /Scope orders has no description/);
});

test("gatepost test runs the tests of a project and returns their exit code", () => {
  const folder = initiate();
  const passed = run(folder, CLI_SOURCE, "test");
  assert.equal(passed.status, 0, passed.stdout + passed.stderr);
  assert.match(passed.stdout, /pass 3\n/);

  writeFileSync(join(folder, "endpoints/bad.test.ts"), "throw new Error('no');");
  assert.equal(run(folder, CLI_SOURCE, "test").status, 1);
  const named = run(folder, CLI_SOURCE, "test", "endpoints/orders.test.ts", "endpoints/o*.test.ts");
  assert.equal(named.status, 0, named.stdout);
  const flagged = run(folder, CLI_SOURCE, "test", "--", "--test-name-pattern=the scope");
  assert.equal(flagged.status, 1);
  assert.match(flagged.stdout, /pass 1\n/);
});

test("gatepost test loads endpoints as ES modules, in a CommonJS package too", () => {
  const folder = initiate();
  writeFileSync(join(folder, "package.json"), `{ "type": "commonjs" }`);
  const { status, stdout } = run(folder, CLI_SOURCE, "test");
  assert.equal(status, 0, stdout);
  assert.match(stdout, /pass 3\n/);
});

for (const file of ["endpoints/orders.ts", "tsconfig.json"]) {
  test(`init writes nothing and says so where ${file} exists`, () => {
    const folder = makeFolder();
    mkdirSync(join(folder, "endpoints"));
    writeFileSync(join(folder, file), "mine");
    const { status, stdout, stderr } = run(folder, CLI_SOURCE, "init");
    assert.deepEqual([status, stdout], [1, ""]);
    assert.match(stderr, new RegExp(`^gatepost: [^\\n]*${file}[^\\n]*\\n$`));
    assert.deepEqual(filesIn(folder), [file]);
    assert.equal(readFileSync(join(folder, file), "utf8"), "mine");
  });
}

test("init writes nothing where a dangling link or a file is in the way", () => {
  const outside = makeFolder();
  const dangling = makeFolder();
  symlinkSync(join(outside, "package.json"), join(dangling, "package.json"));
  const blocked = makeFolder();
  writeFileSync(join(blocked, "endpoints"), "");
  for (const [folder, name] of [
    [dangling, "package.json"],
    [blocked, "endpoints"],
    [join(blocked, "endpoints"), "endpoints"],
  ] as const) {
    const before = filesIn(folder);
    const { status, stderr } = run(scratch, CLI_SOURCE, "init", folder);
    assert.equal(status, 1);
    assert.match(stderr, new RegExp(`^gatepost: [^\\n]*${name}[^\\n]*\\n$`));
    assert.deepEqual([filesIn(folder), filesIn(outside)], [before, []]);
  }
});

test("init fails at once where its folder cannot be made", { skip: !existsSync("/proc") }, () => {
  const { status, stderr } = run(scratch, CLI_SOURCE, "init", "/proc/shop");
  assert.equal(status, 1, "it has ended by itself");
  assert.match(stderr, /^gatepost: ENOENT[^\n]*\/proc\/shop[^\n]*\n$/);
});
