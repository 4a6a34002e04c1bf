import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const scripts = join(import.meta.dirname, "../../scripts");
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "gatepost-locked-")));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** A stand-in for the server: tells what it may do, asked for as `scope` or `scope=path`. */
const FAKE_SERVER = `
const asked = process.env.ASKED.split(",").map((entry) => entry.split("="));
const may = asked.map(([scope, path]) => process.permission.has(scope, path));
console.log(JSON.stringify({ may }));
`;

function makeProject(): string {
  const root = mkdtempSync(join(scratch, "project-"));
  for (const name of ["start_locked.ts", "memory_settings.ts"]) {
    cpSync(join(scripts, name), join(root, "scripts", name));
  }
  mkdirSync(join(root, "dist"));
  mkdirSync(join(root, "endpoints"));
  writeFileSync(join(root, "package.json"), `{ "type": "module" }`);
  writeFileSync(join(root, "dist/server.js"), FAKE_SERVER);
  return root;
}

/** Starts the stand-in in `root` and returns which of the asked rights it has. */
function askRights(root: string, asked: string[], env: Record<string, string> = {}): boolean[] {
  const { stdout, stderr } = spawnSync(process.execPath, ["scripts/start_locked.ts"], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ASKED: asked.join(","), ...env },
  });
  assert.equal(stderr, "");
  return JSON.parse(stdout).may;
}

test("start_locked grants network, workers, code, endpoints and the data folder", () => {
  const root = makeProject();
  const asked = [
    "net",
    "worker",
    `fs.read=${root}/dist/server.js`,
    `fs.read=${root}/package.json`,
    `fs.read=${root}/endpoints/a/b.ts`,
    `fs.read=${root}/state/gatepost.db`,
    `fs.write=${root}/state/gatepost.db`,
  ];
  const env = { GATEPOST_ENDPOINTS: "endpoints", GATEPOST_DATABASE: "./state/gatepost.db" };
  assert.deepEqual(askRights(root, asked, env), asked.map(() => true));
});

test("start_locked grants nothing else", () => {
  const root = makeProject();
  const asked = [
    "child",
    "addon",
    "wasi",
    "inspector",
    "fs.read=/etc/passwd",
    `fs.read=${root}`,
    `fs.read=${root}/endpoints`,
    `fs.read=${root}/scripts/start_locked.ts`,
    `fs.write=${root}/dist/server.js`,
    `fs.write=${root}/package.json`,
    "fs.write=/tmp",
  ];
  assert.deepEqual(askRights(root, asked), asked.map(() => false));
});

test("start_locked does not let the server write its endpoint modules", () => {
  const root = makeProject();
  const asked = [`fs.write=${root}/endpoints/a.ts`];
  assert.deepEqual(askRights(root, asked, { GATEPOST_ENDPOINTS: "endpoints" }), [false]);
});

test("start_locked creates the default data folder for its owner alone", () => {
  const root = makeProject();
  assert.deepEqual(askRights(root, [`fs.write=${root}/data/gatepost.db`]), [true]);
  assert.equal(statSync(join(root, "data")).mode & 0o777, 0o700);
});

test("start_locked grants what a symbolic link leads to", () => {
  const root = makeProject();
  symlinkSync(join(root, "endpoints"), join(root, "link"));
  const asked = [`fs.read=${root}/link/a.ts`, `fs.read=${root}/endpoints/a.ts`];
  assert.deepEqual(askRights(root, asked, { GATEPOST_ENDPOINTS: "link" }), [true, true]);
});

// what is wrong, settings, what is printed
const REFUSED: [string, Record<string, string>, RegExp][] = [
  ["a missing endpoint folder", { GATEPOST_ENDPOINTS: "none" }, /^GATEPOST_ENDPOINTS: .*none\n$/],
  ["a database beside the code", { GATEPOST_DATABASE: "my.db" }, /^GATEPOST_DATABASE: .* own/],
  [
    "a database beside endpoint modules",
    { GATEPOST_DATABASE: "endpoints/my.db", GATEPOST_ENDPOINTS: "endpoints" },
    /^GATEPOST_DATABASE: .* own folder\n$/,
  ],
];

for (const [what, settings, printed] of REFUSED) {
  test(`start_locked refuses ${what} and starts nothing`, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/start_locked.ts"], {
      cwd: makeProject(),
      encoding: "utf8",
      env: { PATH: process.env["PATH"], ASKED: "net", ...settings },
    });
    assert.equal(status, 2);
    assert.equal(stdout, "");
    assert.match(stderr, printed);
  });
}
