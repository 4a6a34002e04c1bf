import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startServer } from "../helpers/process.ts";

const checkout = join(import.meta.dirname, "../..");
const scratch = mkdtempSync(join(tmpdir(), "gatepost-package-"));
const consumer = join(scratch, "consumer");
const installed = join(consumer, "node_modules/gatepost");
const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8"));

// Packs the present dist (`npm test` has just built it) and unpacks it beside a made-up consumer.
before(() => {
  const npm = process.env["npm_execpath"];
  const [program, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  const flags = ["--silent", "--ignore-scripts", `--pack-destination=${scratch}`];
  execFileSync(program, [...first, "pack", ...flags], { cwd: checkout, stdio: "pipe" });
  mkdirSync(installed, { recursive: true });
  const file = join(scratch, `gatepost-${manifest.version}.tgz`);
  execFileSync("tar", ["-xzf", file, "-C", installed, "--strip-components=1"]);
});
after(() => rmSync(scratch, { recursive: true, force: true }));

test("the package holds dist, README.md and package.json alone", () => {
  const names = globSync("*", { cwd: installed }).sort();
  assert.deepEqual(names, ["README.md", "dist", "package.json"]);
});

test("the package holds code and types, and neither tests nor maps", () => {
  const files = globSync("dist/**/*.*", { cwd: installed, exclude: ["dist/example"] });
  assert.ok(files.includes(join("dist", "server.js")));
  assert.deepEqual(files.filter((file) => !/\.(js|d\.ts|css)(\.(br|gz))?$/.test(file)), []);
  assert.deepEqual(files.filter((file) => /\.test\.|\/fixtures\//.test(file)), []);
});

test("V8's compile cache is not packed, and is kept beside the code for the next start", () => {
  const kept = join(installed, "dist/.compiled");
  assert.deepEqual(globSync(`${kept}*`, { cwd: installed }), []);
  const env = { PATH: process.env["PATH"] };
  const run = (more = {}) =>
    execFileSync(process.execPath, [join(installed, "dist/cli.js"), "--version"], {
      env: { ...env, ...more },
    });
  run({ NODE_DISABLE_COMPILE_CACHE: "1" });
  assert.deepEqual(globSync(`${kept}*`), []);
  run();
  assert.ok(globSync(`${kept}/*/*`).length > 10);
});

test("the package's program is executable and prints its version", () => {
  const program = join(installed, manifest.bin.gatepost);
  accessSync(program, constants.X_OK);
  const printed = execFileSync(process.execPath, [program, "--version"], { encoding: "utf8" });
  assert.ok(printed.includes(manifest.version), printed);
});

for (const args of [["serve"], ["serve", "--locked"]]) {
  test(`the package serves with nothing else installed: gatepost ${args.join(" ")}`, async (t) => {
    const folder = mkdtempSync(join(scratch, "data-"));
    const endpoints = join(consumer, "endpoints");
    mkdirSync(endpoints, { recursive: true });
    const source = `import type { Endpoint } from "gatepost";
      export const ping: Endpoint = {
        method: "GET", path: "/ping", public: true, handle: () => 1,
      };`;
    writeFileSync(join(endpoints, "ping.ts"), source);
    const env = { GATEPOST_ENDPOINTS: endpoints, NODE_V8_COVERAGE: undefined };
    const server = await startServer({ entry: join(installed, "dist/cli.js"), args, folder, env });
    t.after(() => server.kill());
    assert.equal((await fetch(`${server.url}/ping`)).status, 200);
    assert.equal(await server.stop(), 0);
  });
}

test("on an older Node an installed package says in one line what to do", (t) => {
  const { status, stderr } = spawnSync("/usr/bin/node", [join(installed, "dist/cli.js")], {
    encoding: "utf8",
  });
  if (status !== 1) return t.diagnostic("there is no older Node here");
  assert.match(stderr, /^Gatepost needs Node\.js 26 [^\n]*npm install node@26[^\n]*\n$/);
});

test("the package names the Node that it needs", () => {
  assert.deepEqual(manifest.engines, { node: ">=26" });
});

test("`import type { Endpoint } from \"gatepost\"` is checked by the compiler", () => {
  const compiler = join(checkout, "node_modules/typescript/bin/tsc");
  const types = join(checkout, "node_modules/@types");
  const check = (source: string): string => {
    writeFileSync(join(consumer, "orders.mts"), source);
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "esnext"];
    options.push("--typeRoots", types, "--types", "node", "orders.mts");
    try {
      return execFileSync(process.execPath, [compiler, ...options], {
        cwd: consumer,
        encoding: "utf8",
      });
    } catch (error) {
      return String((error as { stdout: string }).stdout);
    }
  };
  const endpoint = (path: string): string => `
    import type { Endpoint } from "gatepost";
    export const list: Endpoint = {
      method: "GET", path: ${path}, public: true, handle: () => [1],
    };`;
  assert.equal(check(endpoint(`"/orders"`)), "");
  assert.match(check(endpoint("1")), /orders\.mts\(4,22\): error TS2322/);
});

test("gatepost init, test and gatepost/testing work in the package and beside it", () => {
  const program = join(installed, manifest.bin.gatepost);
  const run = (...args: readonly string[]) => {
    const env = { PATH: process.env["PATH"] };
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: join(consumer, "shop"),
      encoding: "utf8",
      env,
    });
    assert.equal(status, 0, stdout + stderr);
  };
  mkdirSync(join(consumer, "shop"));
  run(program, "init");
  run(join(checkout, "node_modules/typescript/bin/tsc"), "--project", ".");
  run(program, "test");
  run("--test", "endpoints/orders.test.ts"); // by the exports of the package
});

test("the package cannot be published by mistake: its name is somebody else's", () => {
  assert.equal(manifest.private, true);
});

test("the manifest names no runtime dependency and four tools", () => {
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.optionalDependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
  assert.deepEqual(Object.keys(manifest.devDependencies).sort(), [
    "@types/node",
    "c8",
    "node",
    "typescript",
  ]);
});

test("the lockfile names no registry", () => {
  const lock = readFileSync(join(checkout, "package-lock.json"), "utf8");
  assert.equal(lock.includes(`"resolved"`), false);
  assert.equal(/registry/i.test(lock), false);
});

test("the compile cache is written at once, so that it outlasts a killed process", () => {
  const kept = join(installed, "dist/.compiled");
  rmSync(kept, { recursive: true, force: true });
  const part = (path: string) => JSON.stringify(join(installed, "dist", path));
  const code = `const { importQuickly } = await import(${part("base/quick_import.js")});
    await importQuickly(() => import(${part("config.js")}));
    const { globSync } = await import("node:fs");
    console.log(globSync(${JSON.stringify(`${kept}/*/*`)}).length);`;
  const stdout = execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
    env: { PATH: process.env["PATH"] },
  });
  assert.ok(Number(stdout) > 10, `${stdout} files`);
});
