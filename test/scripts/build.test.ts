import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { build, isStale, squeeze } from "../../scripts/build.mjs";

const checkout = join(import.meta.dirname, "../..");
const scratch = mkdtempSync(join(tmpdir(), "gatepost-build-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** A small project that uses this one's compiler, and no git. */
function makeProject(): string {
  const root = mkdtempSync(join(scratch, "project-"));
  cpSync(join(checkout, "tsconfig.json"), join(root, "tsconfig.json"));
  symlinkSync(join(checkout, "node_modules"), join(root, "node_modules"));
  mkdirSync(join(root, "scripts/example/endpoints"), { recursive: true });
  writeFileSync(join(root, "scripts/example/endpoints/one.ts"), "export const one = 1;\n");
  for (const folder of ["src/console/pages", "src/api/pages"]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  const project = "src/console/tsconfig.json";
  cpSync(join(checkout, project), join(root, project));
  const palette = `export const PALETTE = {\n  page: { light: "#fff", dark: "#000" },\n};\n`;
  writeFileSync(join(root, "src/api/pages/palette.ts"), palette);
  writeFileSync(join(root, "src/console/main.ts"), `export const page: string = "here";\n`);
  writeFileSync(join(root, "src/console/pages/one.ts"), `export const one =\n  1;\n`);
  writeFileSync(join(root, "src/console/console.css"), "/* a note */\nbody { margin: 0; }\n");
  writeFileSync(join(root, "scripts/build.mjs"), "");
  writeFileSync(join(root, "package.json"), `{ "version": "7.8.9", "type": "module" }`);
  writeFileSync(join(root, "src/cli.ts"), `#!/usr/bin/env node\nexport const one: number = 1;\n`);
  writeFileSync(join(root, "src/version.ts"), `export const version = "source";\n`);
  return root;
}

function touchLater(path: string): void {
  const later = new Date(Date.now() + 10_000);
  utimesSync(path, later, later);
}

async function loadVersion(root: string): Promise<unknown> {
  return { ...(await import(join(root, "dist/version.js"))) };
}

test("build() writes the version and the given revision as literals", async () => {
  const root = makeProject();
  assert.equal(build(root, { GATEPOST_REVISION: "abc1234" }), true);
  assert.deepEqual(await loadVersion(root), { version: "7.8.9", revision: "abc1234" });
});

test("build() packs what browsers load, compressed and with the pages' colours", () => {
  const root = makeProject();
  assert.equal(build(root, { GATEPOST_REVISION: "abc1234" }), true);
  const packed = join(root, "dist/console");
  const style = readFileSync(join(packed, "console.css"));
  assert.equal(String(style), ":root{--page:light-dark(#fff,#000);}\nbody{margin:0}");
  assert.deepEqual(brotliDecompressSync(readFileSync(join(packed, "console.css.br"))), style);
  assert.deepEqual(gunzipSync(readFileSync(join(packed, "console.css.gz"))), style);
  assert.equal(readFileSync(join(packed, "pages/one.js"), "utf8"), "export const one=1;");
  assert.equal(existsSync(join(root, "dist/.browser")), false);
});

test("squeeze() removes space that nothing needs, and none within literals", () => {
  const cases = [
    ["const a = { b: [1, 2] };\n    go(a);\n", "const a={b:[1,2]};go(a);"],
    ['say("a = b", \'c , d\', `e : ${f} `);', 'say("a = b",\'c , d\',`e : ${f} `);'],
    ["const wide = / = [/ ,]/u;", "const wide=/ = [/ ,]/u;"],
    ["say(`${a ? `b , c` : d}`) ;", "say(`${a ? `b , c` : d}`) ;"],
    ["if (a)\n    return b\nelse\n    c - -d;", "if(a)\nreturn b\nelse\nc - -d;"],
    ["const a = b\n    / c;", "const a=b\n/c;"],
  ];
  for (const [script = "", squeezed] of cases) assert.equal(squeeze(script), squeezed);
});

test("build() copies the example, which `gatepost init` writes", () => {
  const root = makeProject();
  build(root, {});
  const copy = readFileSync(join(root, "dist/example/endpoints/one.ts"), "utf8");
  assert.equal(copy, "export const one = 1;\n");
});

test("build() takes the short commit for the revision", async () => {
  const root = makeProject();
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], {
      cwd: root,
      encoding: "utf8",
    }).trim();
  git("init", "--quiet");
  git("commit", "--quiet", "--allow-empty", "--message=one");
  build(root, {});
  const revision = git("rev-parse", "--short", "HEAD");
  assert.deepEqual(await loadVersion(root), { version: "7.8.9", revision });
  assert.equal(isStale(root, {}), false);
  git("commit", "--quiet", "--allow-empty", "--message=two");
  assert.equal(isStale(root, {}), true);
  // Now git gives no revision, as in another user's clone.
  rmSync(join(root, ".git/HEAD"));
  assert.equal(isStale(root, {}), false);
  writeFileSync(join(root, "package.json"), `{ "version": "7.9.0", "type": "module" }`);
  assert.equal(isStale(root, {}), true);
});

test("build() takes `unknown` for the revision without git", async () => {
  const root = makeProject();
  build(root, {});
  assert.deepEqual(await loadVersion(root), { version: "7.8.9", revision: "unknown" });
});

test("build() refuses a revision that does not fit a header", () => {
  const root = makeProject();
  assert.throws(() => build(root, { GATEPOST_REVISION: "a b\r\n" }), /GATEPOST_REVISION must be/);
});

test("build() makes the program executable and keeps its first line", () => {
  const root = makeProject();
  build(root, {});
  const program = join(root, "dist/cli.js");
  assert.equal(statSync(program).mode & 0o111, 0o111);
  assert.match(readFileSync(program, "utf8"), /^#!\/usr\/bin\/env node\n/);
});

test("build() removes the output of a module that was deleted", () => {
  const root = makeProject();
  const extra = join(root, "src/extra.ts");
  writeFileSync(extra, "export const two = 2;\n");
  build(root, {});
  assert.equal(existsSync(join(root, "dist/extra.js")), true);
  rmSync(extra);
  build(root, {});
  assert.equal(existsSync(join(root, "dist/extra.js")), false);
});

test("build.mjs shows a type error and exits 1, and the outcome counts as stale", () => {
  const root = makeProject();
  const script = join(root, "scripts/build.mjs");
  cpSync(join(checkout, "scripts/build.mjs"), script);
  writeFileSync(join(root, "src/cli.ts"), `export const one: number = "1";\n`);
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /cli\.ts\(1,14\): error TS2322/);
  assert.equal(isStale(root, {}), true);
});

test("isStale() is true without a build and false after one", () => {
  const root = makeProject();
  assert.equal(isStale(root, {}), true);
  build(root, {});
  assert.equal(isStale(root, {}), false);
});

const INPUTS = ["src/cli.ts", "src", "package.json", "tsconfig.json", "scripts/build.mjs",
  "scripts/example/endpoints/one.ts"];
for (const input of INPUTS) {
  test(`isStale() is true after a change of ${input}`, () => {
    const root = makeProject();
    build(root, {});
    touchLater(join(root, input));
    assert.equal(isStale(root, {}), true);
  });
}

test("isStale() is true for another revision", () => {
  const root = makeProject();
  build(root, { GATEPOST_REVISION: "one" });
  assert.equal(isStale(root, { GATEPOST_REVISION: "one" }), false);
  assert.equal(isStale(root, { GATEPOST_REVISION: "two" }), true);
});
