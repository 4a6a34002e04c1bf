import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const checkout = join(import.meta.dirname, "../..");
const scratch = mkdtempSync(join(tmpdir(), "gatepost-setup-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const LOCK = {
  packages: {
    "": { version: "1.0.0" },
    "node_modules/tool": { version: "2.0.0" },
    "node_modules/tool-for-another-platform": { version: "2.0.0", optional: true },
  },
};

/** A stand-in for npm: notes how it was called, then does what FAKE_NPM says. */
const FAKE_NPM = `
const { appendFileSync, mkdirSync, readFileSync, writeFileSync } = require("node:fs");
appendFileSync("calls.txt", process.argv.slice(2).join(" ") + "\\n");
console.log("noise of npm");
const mode = process.env.FAKE_NPM;
if (mode === "fails") {
  console.error("npm error network unreachable");
  process.exit(7);
}
mkdirSync("node_modules/tool", { recursive: true });
if (mode !== "without-scripts") {
  mkdirSync("node_modules/node/bin", { recursive: true });
  writeFileSync("node_modules/node/bin/node", "");
}
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
delete lock.packages[""];
delete lock.packages["node_modules/tool-for-another-platform"];
writeFileSync("node_modules/.package-lock.json", JSON.stringify(lock));
`;

type Project = {
  root: string;
  /** Runs the set-up; `mode` is how the stand-in for npm behaves. */
  run(mode?: string, args?: string[]): { status: number | null; stdout: string; stderr: string };
  /** How often npm was called so far, with its arguments. */
  calls(): string[];
};

function makeProject(): Project {
  const root = mkdtempSync(join(scratch, "project-"));
  for (const file of ["scripts/setup.mjs", "scripts/build.mjs"]) {
    cpSync(join(checkout, file), join(root, file));
  }
  writeFileSync(join(root, "package-lock.json"), JSON.stringify(LOCK));
  writeFileSync(join(root, "npm.cjs"), FAKE_NPM);
  const calls = join(root, "calls.txt");
  return {
    root,
    run: (mode = "works", args = []) =>
      spawnSync(process.execPath, [join(root, "scripts/setup.mjs"), ...args], {
        encoding: "utf8",
        env: { ...process.env, npm_execpath: join(root, "npm.cjs"), FAKE_NPM: mode },
      }),
    calls: () =>
      existsSync(calls) ? readFileSync(calls, "utf8").trimEnd().split("\n") : [],
  };
}

test("setup installs on a fresh clone, says so first, and shows what npm says", () => {
  const project = makeProject();
  const { status, stdout, stderr } = project.run();
  assert.equal(status, 0);
  assert.equal(stdout, "");
  assert.match(stderr, /^Installing [^\n]+\nnoise of npm\n$/);
  assert.equal(project.calls().length, 1);
});

test("setup is silent and calls nothing when all is in place", () => {
  const project = makeProject();
  project.run();
  const { status, stdout, stderr } = project.run();
  assert.equal(status, 0);
  assert.equal(stdout + stderr, "");
  assert.equal(project.calls().length, 1);
});

test("setup installs the tools and their scripts whatever the user's npm settings", () => {
  const project = makeProject();
  project.run();
  const [call = ""] = project.calls();
  assert.match(call, /^ci /);
  for (const flag of ["--include=dev", "--no-ignore-scripts", "--no-dry-run"]) {
    assert.ok(call.split(" ").includes(flag), `${flag} in ${call}`);
  }
});

const DAMAGES: [string, (root: string) => void][] = [
  ["a package's folder is missing", (root) =>
    rmSync(join(root, "node_modules/tool"), { recursive: true })],
  ["the pinned Node is missing", (root) => rmSync(join(root, "node_modules/node/bin/node"))],
  ["npm's record is missing", (root) => rmSync(join(root, "node_modules/.package-lock.json"))],
  [
    "the lockfile names another version",
    (root) => {
      const lock = structuredClone(LOCK);
      lock.packages["node_modules/tool"].version = "2.0.1";
      writeFileSync(join(root, "package-lock.json"), JSON.stringify(lock));
    },
  ],
];

for (const [what, damage] of DAMAGES) {
  test(`setup installs again when ${what}`, () => {
    const project = makeProject();
    project.run();
    damage(project.root);
    assert.equal(project.run().status, 0);
    assert.equal(project.calls().length, 2);
  });
}

test("setup shows what npm said and exits 1 when npm fails", () => {
  const { status, stderr } = makeProject().run("fails");
  assert.equal(status, 1);
  assert.match(stderr, /npm error network unreachable/);
  assert.match(stderr, /The installation failed/);
});

test("setup exits 1 when npm left the pinned Node out", () => {
  const { status, stderr } = makeProject().run("without-scripts");
  assert.equal(status, 1);
  assert.match(stderr, /The installation failed/);
});

test("setup does not build if the installation failed", () => {
  const project = makeProject();
  mkdirSync(join(project.root, "src"));
  assert.equal(project.run("fails", ["--build"]).status, 1);
  assert.equal(existsSync(join(project.root, "dist")), false);
});

test("setup says in one line why a build cannot be made", () => {
  const { root, run } = makeProject();
  for (const name of ["src", "scripts/example", "dist"]) mkdirSync(join(root, name));
  for (const name of ["package.json", "tsconfig.json"]) writeFileSync(join(root, name), "{}");
  assert.equal(run().status, 0);
  process.env["GATEPOST_REVISION"] = "no revision";
  const { status, stderr } = run("works", ["--build"]);
  delete process.env["GATEPOST_REVISION"];
  assert.equal(status, 1);
  assert.match(stderr, /^The build failed: GATEPOST_REVISION must be [^\n]+\n$/);
});
