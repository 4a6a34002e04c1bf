// On SQLite alone: it is about the file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { cp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "../helpers/http_client.ts";
import { PASSWORD, readObject, SOURCE_ENTRY } from "../helpers/gatepost.ts";
import {
  CLI_ENTRY,
  createDataFolder,
  type RunningServer,
  type RunResult,
  runNode,
  type ServerOptions,
  startServer,
} from "../helpers/process.ts";
import { exchangeRaw, openRaw, parseResponses } from "../helpers/raw_http.ts";
import { startReceiver } from "../helpers/receiver.ts";

const onLinux = process.platform === "linux" ? test : () => {};

const KEY = Buffer.alloc(32, 7).toString("base64");

async function createFolder(t: TestContext): Promise<string> {
  const folder = await createDataFolder();
  // This runs before the servers are stopped, so one of them may still create a file.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/** Starts a server from its source, and kills it at the end of the test. */
async function start(t: TestContext, options: ServerOptions): Promise<RunningServer> {
  const server = await startServer({ entry: SOURCE_ENTRY, ...options });
  t.after(() => server.kill());
  return server;
}

/** Tries to start a server on a database in the folder. */
function tryStart(folder: string, env: Record<string, string> = {}): Promise<RunResult> {
  const database = join(folder, "gatepost.db");
  return runNode([SOURCE_ENTRY], {
    env: { GATEPOST_PORT: "0", GATEPOST_DATABASE: database, ...env },
  });
}

/** Asserts one clear line on stderr without a stack, nothing on stdout, and exit 1. */
function assertRefused({ code, stdout, stderr }: RunResult, reason: RegExp): void {
  assert.equal(code, 1, stderr);
  assert.equal(stdout, "");
  assert.match(stderr, reason);
  assert.match(stderr, /^[^\n]+\n$/, "one line");
  assert.doesNotMatch(stderr, /\n {4}at |\.ts:\d/);
}

/** The files of a folder, with their contents. */
function readFolder(folder: string): Record<string, string> {
  const names = readdirSync(folder).sort();
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(folder, name)).toString("base64")]),
  );
}

/** Databases as a server leaves them: made once, and copied for each test. */
let templates = "";

before(async () => {
  templates = await createDataFolder();
  const kinds = [["plain", {}], ["sealed", { GATEPOST_SECRET_KEY: KEY }]] as const;
  for (const [name, env] of kinds) {
    const folder = join(templates, name);
    const server = await startServer({
      entry: SOURCE_ENTRY,
      folder,
      env: { GATEPOST_ADMIN_PASSWORD: PASSWORD, ...env },
    });
    assert.equal(await server.stop(), 0);
  }
});
after(() => rm(templates, { recursive: true, force: true }));

async function makeDatabase(t: TestContext, kind: "plain" | "sealed" = "plain"): Promise<string> {
  const folder = await createFolder(t);
  await cp(join(templates, kind), folder, { recursive: true });
  return folder;
}

async function canLogIn(url: string, password: string): Promise<boolean> {
  const login = { username: "admin", password };
  const response = await createClient(url).postJson("/consumer/login", login);
  return response.status === 200;
}

test("a port in use: one line, exit 1, and the next start works", async (t) => {
  const folder = await createFolder(t);
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  t.after(() => taken.close());
  const address = taken.address();
  const port = String(typeof address === "object" ? address?.port : 0);
  const env = { GATEPOST_PORT: port, GATEPOST_ADMIN_PASSWORD: PASSWORD };
  const reason = new RegExp(`GATEPOST_PORT: .*EADDRINUSE.*:${port}$`, "m");
  assertRefused(await tryStart(folder, env), reason);
  const server = await start(t, { folder });
  assert.ok(await canLogIn(server.url, PASSWORD));
});

test("an address of another machine: one line that names GATEPOST_HOST, exit 1", async (t) => {
  const folder = await createFolder(t);
  for (const host of ["192.0.2.1", "fe80::1", "host.invalid"]) {
    const env = { GATEPOST_HOST: host, GATEPOST_ADMIN_PASSWORD: PASSWORD };
    const reason = new RegExp(`^Gatepost cannot start: GATEPOST_HOST: .*${RegExp.escape(host)}`);
    assertRefused(await tryStart(folder, env), reason);
  }
});

test("GATEPOST_SHARE_PORT lets several processes listen on one port", async (t) => {
  const folder = await createFolder(t);
  const env = { GATEPOST_SHARE_PORT: "on", GATEPOST_ADMIN_PASSWORD: PASSWORD };
  const first = await start(t, { folder, env });
  const { port } = new URL(first.url);
  const second = await start(t, { folder, env: { ...env, GATEPOST_PORT: port } });
  assert.equal(await first.stop(), 0);
  assert.equal(second.url, first.url);
  assert.ok(await canLogIn(second.url, PASSWORD));
});

test("the console's own port is shared too, and an error names GATEPOST_CONSOLE", async (t) => {
  const folder = await createFolder(t);
  const env = { GATEPOST_CONSOLE: "127.0.0.1:0", GATEPOST_ADMIN_PASSWORD: PASSWORD };
  const first = await start(t, { folder, env: { ...env, GATEPOST_SHARE_PORT: "on" } });
  const line = first.lines.find((each) => each.includes('"listening"')) ?? "{}";
  const place = new URL(JSON.parse(line).console).host;
  const second = await start(t, {
    folder,
    env: { ...env, GATEPOST_CONSOLE: place, GATEPOST_SHARE_PORT: "on" },
  });
  assert.equal(await first.stop(), 0);
  assert.equal((await createClient(`http://${place}`).get("/console")).status, 200);
  const reason = new RegExp(`^Gatepost cannot start: GATEPOST_CONSOLE: .*EADDRINUSE.*${place}\\n`);
  assertRefused(await tryStart(folder, { GATEPOST_CONSOLE: place }), reason);
  assert.equal(await second.stop(), 0);
});

test("a process that stops on a shared port still responds to requests on their way", async (t) => {
  const folder = await createFolder(t);
  const server = await start(t, { folder, env: { GATEPOST_SHARE_PORT: "on" } });
  const idle = await openRaw(Number(new URL(server.url).port));
  const request = "GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n";
  let text = "";
  idle.on("data", (chunk) => text += String(chunk));
  idle.write(request);
  await once(idle, "data"); // kept alive
  const stopped = server.stop();
  while (!server.lines.some((line) => line.includes('"stopping"'))) await delay(10);
  idle.write(request);
  assert.equal(await stopped, 0);
  const [, last] = parseResponses(text);
  assert.deepEqual([last?.status, last?.headers["connection"]], [200, "close"]);
});

test("each risky setting is a warning in the log of the start", async (t) => {
  const folder = await makeDatabase(t);
  chmodSync(join(folder, "gatepost.db"), 0o644);
  const shell = `ulimit -n 1000; exec "$0" "$@"`;
  const child = spawn("sh", ["-c", shell, process.execPath, SOURCE_ENTRY], {
    env: { GATEPOST_PORT: "0", GATEPOST_DATABASE: join(folder, "gatepost.db") },
  });
  t.after(() => child.kill("SIGKILL"));
  let lines = "";
  for await (const part of child.stdout) {
    lines += String(part);
    if (lines.includes("ulimit")) break;
  }
  const warnings = lines.split("\n").filter((line) => line.includes('"level":"warn"'));
  const [key = "", mode = "", limit = "", ...more] = warnings.map((line) => JSON.parse(line).msg);
  assert.match(key, /^GATEPOST_SECRET_KEY: /);
  assert.match(mode, /gatepost\.db \(mode 644\)/);
  assert.match(limit, /^ulimit -n: 1000 open files/);
  assert.deepEqual(more, []);
});

test("a data folder that cannot be created: one line, exit 1", async (t) => {
  const folder = await createFolder(t);
  const file = join(folder, "file");
  writeFileSync(file, "here");
  const env = { GATEPOST_DATABASE: join(file, "data/gatepost.db") };
  assertRefused(await tryStart(folder, env), /file is not a folder/);
  assert.deepEqual(readFolder(folder), { file: Buffer.from("here").toString("base64") });
});

onLinux("a database below /proc, which keeps no files: one line, exit 1", async (t) => {
  const env = { GATEPOST_DATABASE: "/proc/none/gatepost.db" };
  assertRefused(await tryStart(await createFolder(t), env), /\/proc keeps no files/);
});

onLinux("a named pipe as the file of a secret: one line, exit 2", async (t) => {
  const pipe = join(await createFolder(t), "pipe");
  await once(spawn("mkfifo", [pipe]), "exit");
  const env = { GATEPOST_PORT: "0", GATEPOST_METRICS_TOKEN_FILE: pipe };
  const { code, stderr } = await run(process.execPath, [SOURCE_ENTRY], env);
  assert.match(stderr, /^GATEPOST_METRICS_TOKEN_FILE: cannot be read: \S+pipe is a named pipe\n$/);
  assert.equal(code, 2);
});

test("a working folder that was removed: one line that says so, exit 1", async (t) => {
  const folder = await createFolder(t);
  const script = 'mkdir "$1/gone" && cd "$1/gone" && rmdir ../gone && exec "$2" "$3"';
  const env = { GATEPOST_PORT: "0", GATEPOST_DATABASE: join(folder, "gatepost.db") };
  const args = ["-c", script, "sh", folder, process.execPath, SOURCE_ENTRY];
  assertRefused(await run("sh", args, env), /^Gatepost cannot start: .*working directory/);
});

test("a database that is a folder: one line, exit 1", async (t) => {
  const folder = await createFolder(t);
  mkdirSync(join(folder, "gatepost.db"));
  assertRefused(await tryStart(folder), /is not an SQLite database/);
});

test("a database of a newer version: one line, exit 1, and no byte is changed", async (t) => {
  const folder = await makeDatabase(t);
  const connection = new DatabaseSync(join(folder, "gatepost.db"));
  connection.exec("PRAGMA user_version = 9999");
  connection.close();
  const before = readFolder(folder);
  assertRefused(await tryStart(folder), /schema version is 9999/);
  assert.deepEqual(readFolder(folder), before);
});

// Runs in another process: this one would lose its locks when it reads the file.
const NEWER = `
const { DatabaseSync } = require("node:sqlite");
const connection = new DatabaseSync(process.argv[1]);
connection.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 9999");
console.log("open");
setInterval(() => {}, 1000);
`;

for (const state of ["is running", "has crashed"]) {
  test(`a database of a newer Gatepost that ${state}: one line, exit 1, no change`, async (t) => {
    const folder = await makeDatabase(t);
    const newer = spawn(process.execPath, ["-e", NEWER, join(folder, "gatepost.db")]);
    t.after(() => newer.kill("SIGKILL"));
    await once(newer.stdout, "data");
    if (state === "has crashed") {
      newer.kill("SIGKILL");
      await once(newer, "exit");
    }
    const { "gatepost.db": file, "gatepost.db-wal": log } = readFolder(folder);
    assert.ok(String(log).length > 1000);
    assertRefused(await tryStart(folder), /schema version is 9999/);
    const found = readFolder(folder);
    assert.ok(found["gatepost.db"] === file && found["gatepost.db-wal"] === log);
  });
}

// what replaces the file, how, and what the line says
const SPOILED: readonly [what: string, spoil: (file: string) => void, says: RegExp][] = [
  ["a text file", (file) => writeFileSync(file, "Dear diary"), /not an SQLite database/],
  ["noise after SQLite's header", (file) => {
    const noise = Buffer.alloc(9000, 0xa5);
    writeFileSync(file, Buffer.concat([Buffer.from("SQLite format 3\0"), noise]));
  }, /is damaged/],
  ["a database whose first page is noise", (file) => {
    const bytes = readFileSync(file);
    bytes.fill(0xa5, 100, 4096);
    writeFileSync(file, bytes);
  }, /is damaged/],
  ["a database that lost its second half", (file) => {
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, Math.floor(bytes.length / 2)));
  }, /is damaged/],
  ["a database with noise in all pages but the first", (file) => {
    const bytes = readFileSync(file);
    bytes.fill(0xa5, 4096);
    writeFileSync(file, bytes);
  }, /is damaged/],
];

for (const [what, spoil, says] of SPOILED) {
  test(`${what} as the database: one line, exit 1, and no byte is changed`, async (t) => {
    const folder = await makeDatabase(t);
    const file = join(folder, "gatepost.db");
    spoil(file);
    const before = readFileSync(file);
    const result = await tryStart(folder);
    assertRefused(result, says);
    assert.ok(result.stderr.includes(file), result.stderr);
    assert.ok(before.equals(readFileSync(file)));
  });
}

test("another program's database: one line, exit 1, and no byte is changed", async (t) => {
  const folder = await createFolder(t);
  const connection = new DatabaseSync(join(folder, "gatepost.db"));
  connection.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  connection.close();
  const before = readFolder(folder);
  assertRefused(await tryStart(folder), /belongs to another program/);
  assert.deepEqual(readFolder(folder), before);
});

test("a sealed database opens only with its key, and a wrong key changes nothing", async (t) => {
  const folder = await makeDatabase(t, "sealed");
  const before = readFileSync(join(folder, "gatepost.db"));
  const wrong = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") };
  assertRefused(await tryStart(folder, wrong), /GATEPOST_SECRET_KEY/);
  assertRefused(await tryStart(folder), /GATEPOST_SECRET_KEY/);
  assert.ok(before.equals(readFileSync(join(folder, "gatepost.db"))));
  const server = await start(t, { folder, env: { GATEPOST_SECRET_KEY: KEY } });
  assert.ok(await canLogIn(server.url, PASSWORD));
});

test("bad configuration: a line without secrets for each bad variable, exit 2", async (t) => {
  const folder = await createFolder(t);
  const { code, stdout, stderr } = await tryStart(folder, {
    GATEPOST_PORT: "http",
    GATEPOST_BASE_URL: "https://a.example/?q",
    GATEPOST_CALLBACK_TIMEOUT: "soon",
    GATEPOST_SECRET_KEY: "dG9vIHNob3J0IHNlY3JldA==",
    GATEPOST_METRICS_TOKEN: "short secret",
    GATEPOST_ADMIN_PASSWORD: "secret",
    GATEPOST_CALLBACK_TIMOUT: "5s",
  });
  assert.equal(code, 2);
  assert.equal(stdout, "");
  const names = stderr.trimEnd().split("\n").map((line) => line.split(":")[0]);
  assert.deepEqual(names.sort(), [
    "GATEPOST_ADMIN_PASSWORD",
    "GATEPOST_BASE_URL",
    "GATEPOST_CALLBACK_TIMEOUT",
    "GATEPOST_CALLBACK_TIMOUT",
    "GATEPOST_METRICS_TOKEN",
    "GATEPOST_PORT",
    "GATEPOST_SECRET_KEY",
  ]);
  assert.doesNotMatch(stderr, /dG9v|short secret/);
  assert.deepEqual(readdirSync(folder), []);
});

test("the server accepts --version and --help, and no other argument", async () => {
  const env = { GATEPOST_PORT: "none of this is read" };
  const help = await runNode([SOURCE_ENTRY, "--help"], { env });
  const version = await runNode([SOURCE_ENTRY, "--version"], { env });
  const wrong = await runNode([SOURCE_ENTRY, "--port=80"], { env });
  assert.deepEqual([version.code, version.stderr, wrong.code, wrong.stdout], [0, "", 2, ""]);
  assert.match(version.stdout, /^gatepost \d+\.\d+\.\d+@\w+\n$/);
  assert.match(wrong.stderr, /^[^\n]*takes no arguments[^\n]*GATEPOST_[^\n]*--help[^\n]*\n$/);
  assert.deepEqual([help.code, help.stdout, help.stderr], [0, wrong.stderr, ""]);
});

test("an invalid endpoint module: its file and the reason, exit 1, no database", async (t) => {
  const folder = await createFolder(t);
  const endpoints = join(folder, "endpoints");
  mkdirSync(endpoints);
  writeFileSync(join(endpoints, "bad.js"), 'export const a = { method: "GET", path: "/a" };\n');
  const { code, stdout, stderr } = await tryStart(folder, { GATEPOST_ENDPOINTS: endpoints });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /bad\.js.*\ba\b/);
  assert.doesNotMatch(stderr, /\n {4}at /);
  assert.deepEqual(readdirSync(folder), ["endpoints"]);
});

test("an older Node: one line that says what is needed and how to get it, exit 1", async (t) => {
  const built = fileURLToPath(new URL("../../dist/server.js", import.meta.url));
  const older = "/usr/bin/node";
  const { stdout: version = "" } = existsSync(older)
    ? await run(older, ["--version"])
    : { stdout: "v99" };
  if (Number.parseInt(version.slice(1), 10) >= 26) {
    t.diagnostic("there is no older Node here");
    return;
  }
  const result = await run(older, [built]);
  assertRefused(result, /npm start/);
  assert.ok(result.stderr.includes(version.trim().slice(1)), result.stderr);
  assert.match(result.stderr, /\b26\b/);
});

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  test(`${signal} ends the server with exit 0, at once if no request is in progress`, async (t) => {
    const server = await start(t, {});
    const idle = await openRaw(Number(new URL(server.url).port));
    idle.write("GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(idle, "data"); // kept alive
    const startedMs = Date.now();
    assert.equal(await server.stop(signal), 0);
    assert.ok(Date.now() - startedMs < 3000);
    assert.match(server.lines.join("\n"), /"msg":"stopped"/);
  });
}

test("a signal during the start ends the server with exit 0 once it has started", async (t) => {
  const folder = await createFolder(t);
  const endpoints = join(folder, "endpoints");
  mkdirSync(endpoints);
  writeFileSync(join(endpoints, "impatient.mjs"), `process.kill(process.pid, "SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 100));\n`);
  const { code, stdout, stderr } = await tryStart(folder, { GATEPOST_ENDPOINTS: endpoints });
  assert.equal(code, 0);
  assert.match(stderr, /^Created user admin, with password \S+\n$/);
  assert.match(stdout, /"msg":"stopped"/);
});

test("a signal during a start that fails ends the server with exit 0 too", async (t) => {
  const folder = await createFolder(t);
  const endpoints = join(folder, "endpoints");
  mkdirSync(endpoints);
  writeFileSync(join(endpoints, "impatient.mjs"), `process.kill(process.pid, "SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 100));
    throw new Error("too late");\n`);
  const { code, stderr } = await tryStart(folder, { GATEPOST_ENDPOINTS: endpoints });
  assert.equal(code, 0);
  assert.match(stderr, /impatient\.mjs: Error: too late/);
});

test("a signal while the program is loaded ends it with exit 0 too", async (t) => {
  const folder = await createFolder(t);
  const preload = `data:text/javascript,import { registerHooks } from "node:module";
    registerHooks({ resolve(specifier, context, next) {
      if (specifier === "./app/serve.ts") process.kill(process.pid, "SIGTERM");
      return next(specifier, context);
    } });`;
  const { code, stderr } = await runNode(["--import", preload, SOURCE_ENTRY], {
    env: { GATEPOST_PORT: "0", GATEPOST_DATABASE: join(folder, "gatepost.db") },
  });
  assert.equal(code, 0, stderr);
});

test("SIGUSR1 starts no debugger", async (t) => {
  const server = await start(t, {});
  process.kill(server.pid, "SIGUSR1");
  await delay(300);
  assert.equal((await createClient(server.url).get("/system/health")).status, 200);
  assert.doesNotMatch(server.stderr(), /Debugger/);
});

test("the line \"listening\" is logged at every level", async (t) => {
  const server = await start(t, { env: { GATEPOST_LOG_LEVEL: "error" } });
  assert.equal(await server.stop(), 0);
  assert.deepEqual(server.lines.map((line) => JSON.parse(line).msg), ["listening"]);
});

test("a server that stops completes requests in progress and refuses new ones", async (t) => {
  const server = await startSlow(t);
  const port = Number(new URL(server.url).port);
  const slow = exchangeRaw(port, "GET /slow?1500 HTTP/1.1\r\nHost: a\r\n\r\n", { waitMs: 9000 });
  await delay(200);
  const stopped = server.stop();
  await delay(200);
  const late = await exchangeRaw(port, "GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal(late.text, "");
  const { responses } = await slow;
  assert.deepEqual(responses.map(({ status, body }) => [status, body]), [[200, '"slow"']]);
  assert.equal(await stopped, 0);
});

test("clients that send requests all the time do not prevent a stop", async (t) => {
  const server = await start(t, {});
  const client = createClient(server.url);
  let isStopping = false;
  const statuses = new Set<number>();
  const busy = Array.from({ length: 4 }, async () => {
    while (!isStopping) {
      const response = await client.get("/system/health").catch(() => undefined);
      if (response) statuses.add(response.status);
    }
  });
  await delay(300);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < 4000, `${Date.now() - startedMs} ms`);
  isStopping = true;
  await Promise.all(busy);
  assert.deepEqual([...statuses], [200]);
});

test("a second signal ends the server at once, even if the clock was set back", async (t) => {
  const server = await startSlow(
    t,
    `const { now } = Date;
    process.on("SIGTERM", () => { Date.now = () => now() - 3_600_000; });`,
  );
  const port = Number(new URL(server.url).port);
  const slow = exchangeRaw(port, "GET /slow?9000 HTTP/1.1\r\nHost: a\r\n\r\n", { waitMs: 9000 });
  await delay(200);
  const startedMs = Date.now();
  const stopped = server.stop();
  await delay(300);
  process.kill(server.pid, "SIGTERM");
  await stopped;
  assert.ok(Date.now() - startedMs < 3000, `${Date.now() - startedMs} ms`);
  assert.equal((await slow).text, "");
});

test("a generated password is shown once, on stderr, and works", async (t) => {
  const folder = await createFolder(t);
  const server = await start(t, { folder });
  const [, password = ""] = /password (\S+)/.exec(server.stderr()) ?? [];
  assert.equal(server.stderr().split("\n").length, 2, "one line");
  assert.ok(password.length >= 20);
  assert.doesNotMatch(server.lines.join("\n"), new RegExp(password));
  assert.ok(await canLogIn(server.url, password));
  await server.stop();
  const again = await start(t, { folder });
  assert.equal(again.stderr(), "");
  assert.ok(await canLogIn(again.url, password));
});

test("GATEPOST_ADMIN_PASSWORD is used only for a database without users", async (t) => {
  const folder = await makeDatabase(t);
  const server = await start(t, { folder, env: { GATEPOST_ADMIN_PASSWORD: "another password" } });
  assert.equal(server.stderr(), "");
  assert.ok(await canLogIn(server.url, PASSWORD));
  assert.equal(await canLogIn(server.url, "another password"), false);
});

test("two first starts on one database make one admin, whose password is shown once", async (t) => {
  const folder = await createFolder(t);
  const servers = await Promise.all([start(t, { folder }), start(t, { folder })]);
  const shown = servers.flatMap((server) => server.stderr().match(/password \S+/g) ?? []);
  assert.equal(shown.length, 1, shown.join());
  const password = String(shown[0]).replace("password ", "");
  for (const { url } of servers) assert.ok(await canLogIn(url, password));
});

test("only their owner may read and write the database and its folder", async (t) => {
  const parent = await createFolder(t);
  const database = join(parent, "new/gatepost.db");
  const server = await start(t, { folder: parent, env: { GATEPOST_DATABASE: database } });
  assert.equal(statSync(join(parent, "new")).mode & 0o777, 0o700);
  for (const name of readdirSync(join(parent, "new"))) {
    assert.equal(statSync(join(parent, "new", name)).mode & 0o077, 0, name);
  }
  assert.equal(await server.stop(), 0);
});

test("a locked server works, and has no access to anything outside", async (t) => {
  const folder = await createFolder(t);
  const endpoints = join(folder, "endpoints");
  mkdirSync(endpoints);
  writeFileSync(join(endpoints, "probe.js"), PROBE);
  writeFileSync(join(folder, "outside.txt"), "outside");
  writeFileSync(join(folder, "key"), `${KEY}\n`);
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const server = await start(t, {
    folder,
    entry: CLI_ENTRY,
    args: ["serve", "--locked"],
    env: {
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      GATEPOST_DATABASE: join(folder, "data/gatepost.db"),
      GATEPOST_ENDPOINTS: endpoints,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
      GATEPOST_SECRET_KEY_FILE: join(folder, "key"),
      NODE_V8_COVERAGE: undefined, // which it may not write
    },
  });
  const client = createClient(server.url);
  const login = await client.postJson("/consumer/login", { username: "admin", password: PASSWORD });
  const bearer = { authorization: `Bearer ${String(readObject(login)["token"])}` };

  const fields = { name: "App", url: "https://app.example", scopes: ["consumer", "probe"] };
  const app = readObject(await client.postJson("/backend/app", fields, bearer));
  const [id, secret] = [app["client_id"], app["client_secret"]].map(String);
  const form = { grant_type: "client_credentials" };
  const tokens = await client.postForm("/authorization/token", form, {
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
  });
  const own = { authorization: `Bearer ${String(readObject(tokens)["access_token"])}` };

  const subscription = { event: "probe.done", endpoint: `${receiver.url}/a` };
  assert.equal((await client.postJson("/consumer/subscription", subscription, bearer)).status, 201);
  const probe = await client.postJson("/probe", { outside: join(folder, "outside.txt") }, own);
  assert.deepEqual(readObject(probe), {
    "reads a file outside": "ERR_ACCESS_DENIED",
    "reads the list of users": "ERR_ACCESS_DENIED",
    "writes beside itself": "ERR_ACCESS_DENIED",
    "starts a process": "ERR_ACCESS_DENIED",
    "reads itself": "done",
  });
  const [request] = await receiver.waitFor(1, 5000, "/a");
  assert.equal(request?.body.toString(), '{"probed":true}');
  for (const path of ["/system/health", "/system/ready", "/system/about", "/openapi.json"]) {
    assert.equal((await client.get(path)).status, 200, path);
  }
  assert.match((await client.get("/system/metrics", bearer)).text, /^process_cpu_seconds_total/m);
  assert.equal(await server.stop(), 0);
  assert.doesNotMatch(server.lines.join("\n"), /"level":"(warn|error)"/);
});

const PROBE = `
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

function attempt(action) {
  try {
    const { error } = action() ?? {};
    if (error) throw error;
    return "done";
  } catch (error) {
    return error.code;
  }
}

export const probe = {
  method: "POST",
  path: "/probe",
  scope: "probe",
  emits: { "probe.done": "A probe was done" },
  handle({ body, dispatch }) {
    dispatch("probe.done", { probed: true });
    return {
      "reads a file outside": attempt(() => void readFileSync(body.outside)),
      "reads the list of users": attempt(() => void readFileSync("/etc/passwd")),
      "writes beside itself": attempt(() => writeFileSync(new URL("x.js", import.meta.url), "")),
      "starts a process": attempt(() => spawnSync("true")),
      "reads itself": attempt(() => void readFileSync(new URL(import.meta.url))),
    };
  },
};
`;

/** A server with GET /slow?MS, which returns "slow" after so many milliseconds. */
async function startSlow(t: TestContext, more = ""): Promise<RunningServer> {
  const endpoints = await createFolder(t);
  writeFileSync(
    join(endpoints, "slow.js"),
    `import { setTimeout as delay } from "node:timers/promises";
    export const slow = {
      method: "GET",
      path: "/slow",
      public: true,
      async handle({ query }) {
        await delay(Number(query.toString().replace("=", "")));
        return "slow";
      },
    };
    ${more}\n`,
  );
  return start(t, { env: { GATEPOST_ENDPOINTS: endpoints } });
}

/** Runs a program to its end. */
async function run(
  program: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<RunResult> {
  const child = spawn(program, args, { env: { PATH: process.env["PATH"], ...env } });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  await once(child, "close");
  return { code: child.exitCode, stdout, stderr };
}
