import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
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
import { MEMORY_ENV, MEMORY_FLAGS } from "../../src/cli/serve.ts";
import { runCli } from "../helpers/process.ts";

const src = join(import.meta.dirname, "../../src");
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "gatepost-serve-")));
after(() => rmSync(scratch, { recursive: true, force: true }));

// Each hook sends the signal to the command when that is about to start the server.
const SIGNAL = `process.kill(process.pid, "SIGTERM");`;
const SIGNALLED: [when: string, hook: string, ended: [number | null, string | null]][] = [
  ["is pending", `const path = process.execPath;
    Object.defineProperty(process, "execPath", { get() {
      if (process.listenerCount("SIGTERM") > 0) ${SIGNAL}
      return path;
    } });`, [0, null]],
  ["comes at the last moment", `const execve = process.execve;
    process.execve = (...args) => { ${SIGNAL} execve(...args); };`, [null, "SIGTERM"]],
];

/** A fake server: prints whether it has each right of ASKED, `scope` or `scope=path`. */
const FAKE_SERVER = `
const asked = process.env.ASKED.split(",").map((entry) => entry.split("="));
const may = asked.map(([scope, path]) => process.permission.has(scope, path));
console.log(JSON.stringify({ may }));
`;

function makeProject(): string {
  const root = mkdtempSync(join(scratch, "project-"));
  cpSync(src, join(root, "src"), { recursive: true });
  mkdirSync(join(root, "endpoints"));
  writeFileSync(join(root, "package.json"), `{ "type": "module", "version": "1.2.3" }`);
  writeFileSync(join(root, "src/server.ts"), FAKE_SERVER);
  return root;
}

type Env = Readonly<Record<string, string>>;

function serve(root: string, env: Env, args = ["--locked"], nodeFlags: string[] = []) {
  return spawnSync(process.execPath, [...nodeFlags, "src/cli.ts", "serve", ...args], {
    cwd: root,
    encoding: "utf8",
    timeout: 60_000,
    env: { PATH: process.env["PATH"], ...env },
  });
}

/** Starts the fake server in `root` and returns which of the asked rights it has. */
function askRights(root: string, asked: string[], env: Env = {}): boolean[] {
  const { stdout, stderr } = serve(root, { ASKED: asked.join(","), ...env });
  assert.equal(stderr, "");
  return JSON.parse(stdout).may;
}

test("serve replaces its own process with the server, with the memory settings", () => {
  const root = makeProject();
  const show = "console.log(JSON.stringify([process.pid, process.execArgv, process.env]))";
  writeFileSync(join(root, "src/server.ts"), show);

  const { pid, stdout } = serve(root, { UNTOUCHED: "1" }, [], ["--max-old-space-size=2048"]);

  const [server, flags, env] = JSON.parse(stdout);
  assert.equal(server, pid);
  assert.deepEqual(flags, [...MEMORY_FLAGS, "--max-old-space-size=2048"]);
  assert.deepEqual([env.GLIBC_TUNABLES, env.UNTOUCHED], [MEMORY_ENV.GLIBC_TUNABLES, "1"]);
});

test("serve does not override a memory setting of NODE_OPTIONS", () => {
  const root = makeProject();
  writeFileSync(join(root, "src/server.ts"), "console.log(JSON.stringify(process.execArgv))");

  const { stdout } = serve(root, { NODE_OPTIONS: "--max_old_space_size=2048" }, []);

  assert.deepEqual(JSON.parse(stdout), MEMORY_FLAGS.filter((flag) => !flag.includes("old-space")));
});

for (const [when, hook, ended] of SIGNALLED) {
  test(`a signal that ${when} when serve starts the server ends the process`, () => {
    const root = makeProject();
    writeFileSync(join(root, "src/server.ts"), "console.log('it serves')");
    writeFileSync(join(root, "hook.mjs"), hook);

    const { status, signal, stdout } = serve(root, {}, [], ["--import", `${root}/hook.mjs`]);

    assert.deepEqual([status, signal, stdout], [...ended, ""]);
  });
}

test("serve exits 2 on a bad configuration, with a line for each error", () => {
  const env = { ASKED: "net", GATEPOST_PORT: "x", GATEPOST_CRON: "maybe" };

  const { status, stdout, stderr } = serve(makeProject(), env, []);

  assert.deepEqual([status, stdout], [2, ""]);
  assert.match(stderr, /^GATEPOST_PORT: .*\nGATEPOST_CRON: .*\n$/);
});

test("serve leaves a secret in a pipe for the server to read", () => {
  const root = makeProject();
  const program = `import { readFileSync } from "node:fs";
    process.stdout.write(readFileSync(process.env.GATEPOST_METRICS_TOKEN_FILE));`;
  writeFileSync(join(root, "src/server.ts"), program);
  const script = 'echo a-token-of-the-test | "$0" src/cli.ts serve';

  const { stdout } = spawnSync("sh", ["-c", script, process.execPath], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], GATEPOST_METRICS_TOKEN_FILE: "/dev/stdin" },
  });

  assert.equal(stdout, "a-token-of-the-test\n");
});

test("serve --locked grants network, workers, code, endpoints and the data folder", () => {
  const root = makeProject();
  const asked = [
    "net",
    "worker",
    `fs.read=${root}/src/server.ts`,
    `fs.read=${root}/package.json`,
    `fs.read=${root}/endpoints/a/b.ts`,
    `fs.read=${root}/state/gatepost.db`,
    `fs.write=${root}/state/gatepost.db`,
  ];
  const env = { GATEPOST_ENDPOINTS: "endpoints", GATEPOST_DATABASE: "./state/gatepost.db" };
  assert.deepEqual(askRights(root, asked, env), asked.map(() => true));
});

test("serve --locked grants nothing else", () => {
  const root = makeProject();
  const asked = [
    "child",
    "addon",
    "wasi",
    "inspector",
    "fs.read=/etc/passwd",
    `fs.read=${root}`,
    `fs.read=${root}/endpoints`,
    `fs.read=${root}/endpoints/../other`,
    `fs.write=${root}/src/server.ts`,
    `fs.write=${root}/package.json`,
    "fs.write=/tmp",
  ];
  assert.deepEqual(askRights(root, asked), asked.map(() => false));
});

test("serve --locked does not let the server write its endpoint modules", () => {
  const root = makeProject();
  const asked = [`fs.write=${root}/endpoints/a.ts`];
  assert.deepEqual(askRights(root, asked, { GATEPOST_ENDPOINTS: "endpoints" }), [false]);
});

test("serve --locked creates the default data folder for its owner alone", () => {
  const root = makeProject();
  assert.deepEqual(askRights(root, [`fs.write=${root}/data/gatepost.db`]), [true]);
  assert.equal(statSync(join(root, "data")).mode & 0o777, 0o700);
});

test("serve --locked makes and grants no data folder for a cluster", () => {
  const root = makeProject();
  const env = { GATEPOST_DATABASE: "rqlite://127.0.0.1:4001" };
  const asked = [`fs.write=${root}/data/gatepost.db`, "fs.write=/tmp", "net"];
  assert.deepEqual(askRights(root, asked, env), [false, false, true]);
  assert.ok(!existsSync(join(root, "data")));
});

test("serve --locked works with folders behind links, and with an existing database", () => {
  const root = makeProject();
  symlinkSync(root, join(root, "link"));
  writeFileSync(join(root, "src/server.ts"), `
    import { readdirSync, realpathSync, writeFileSync } from "node:fs";
    const { GATEPOST_DATABASE: file, GATEPOST_ENDPOINTS: folder } = process.env;
    writeFileSync(file, "");
    console.log(JSON.stringify([realpathSync(file), readdirSync(realpathSync(folder))]));
  `);
  const env = { GATEPOST_ENDPOINTS: "link/endpoints", GATEPOST_DATABASE: "link/state/my.db" };
  for (const start of ["first", "second"]) {
    const { stdout, stderr } = serve(root, env);
    assert.equal(stdout, `${JSON.stringify([join(root, "state/my.db"), []])}\n`, start + stderr);
  }
});

test("a missing endpoint folder ends serve --locked as it ends serve: exit 1", async () => {
  const GATEPOST_ENDPOINTS = join(scratch, "none");
  const env = { GATEPOST_ENDPOINTS, GATEPOST_DATABASE: join(scratch, "state/my.db") };
  const [plain, locked] = await Promise.all([["serve"], ["serve", "--locked"]]
    .map((args) => runCli(args, { env })));
  assert.deepEqual(locked, plain);
  assert.deepEqual([plain?.code, plain?.stdout], [1, ""]);
  assert.match(plain?.stderr ?? "", /^\/.*none: cannot be read: ENOENT.*\(GATEPOST_ENDPOINTS\)\n$/);
});

test("a data folder that cannot be made is refused by serve --locked as by serve", async () => {
  const env = { GATEPOST_DATABASE: "/proc/none/my.db" }; // where Node would try for ever
  const [plain, locked] = await Promise.all([["serve"], ["serve", "--locked"]]
    .map((args) => runCli(args, { env })));
  assert.deepEqual([plain?.code, locked?.code], [1, 1]);
  assert.match(plain?.stderr ?? "", /^Database \/proc\/none\/my\.db: .*keeps no files\.\n$/);
  assert.equal(locked?.stderr, `gatepost: ${plain?.stderr}`);
});

// what is wrong, settings, what is printed
const REFUSED: [string, Record<string, string>, RegExp][] = [
  [
    "two folders of which one's path begins with the other's",
    { GATEPOST_ENDPOINTS: "endpoints", GATEPOST_DATABASE: "endpoints-data/my.db" },
    /endpoints-data begins with .*endpoints: rename/,
  ],
  ["a database beside the code", { GATEPOST_DATABASE: "my.db" }, /GATEPOST_DATABASE: .* own/],
  [
    "a database beside endpoint modules",
    { GATEPOST_DATABASE: "endpoints/my.db", GATEPOST_ENDPOINTS: "endpoints" },
    /GATEPOST_DATABASE: .* own folder \(/,
  ],
];

for (const [what, settings, printed] of REFUSED) {
  test(`serve --locked refuses ${what} and starts nothing`, () => {
    const { status, stdout, stderr } = serve(makeProject(), { ASKED: "net", ...settings });
    assert.equal(status, 2);
    assert.equal(stdout, "");
    assert.match(stderr, printed);
  });
}
