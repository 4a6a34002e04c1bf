// On SQLite alone: it is about the file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { cp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { SECRET_KEY } from "../helpers/config.ts";
import { writeFolder } from "../helpers/folder.ts";
import { PASSWORD, SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { listen } from "../helpers/listen.ts";
import { createDataFolder, runNode } from "../helpers/process.ts";
import {
  assertRefused,
  canLogIn,
  envOn,
  run,
  start,
  tryStart,
  tryStartHere,
} from "./start_stage.ts";

const onLinux = process.platform === "linux" ? test : () => {};

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
  const kinds = [["plain", {}], ["sealed", { GATEPOST_SECRET_KEY: SECRET_KEY }]] as const;
  for (const [name, env] of kinds) {
    const folder = join(templates, name);
    const { code } = await tryStartHere(folder, { GATEPOST_ADMIN_PASSWORD: PASSWORD, ...env });
    assert.equal(code, 0);
  }
});
after(() => rm(templates, { recursive: true, force: true }));

async function makeDatabase(t: TestContext, kind: "plain" | "sealed" = "plain"): Promise<string> {
  const folder = await writeFolder(t, {});
  await cp(join(templates, kind), folder, { recursive: true });
  return folder;
}

test("a port in use: one line, exit 1, and the next start works", async (t) => {
  const folder = await writeFolder(t, {});
  const { port } = new URL(`http://${await listen(t, createServer())}`);
  const env = { GATEPOST_PORT: port, GATEPOST_ADMIN_PASSWORD: PASSWORD };
  const reason = new RegExp(`GATEPOST_PORT: .*EADDRINUSE.*:${port}$`, "m");
  assertRefused(await tryStart(folder, env), reason);
  const server = await start(t, { folder });
  assert.ok(await canLogIn(server.url, PASSWORD));
});

test("an address of another machine: one line that names GATEPOST_HOST, exit 1", async (t) => {
  const folder = await writeFolder(t, {});
  for (const host of ["192.0.2.1", "fe80::1", "host.invalid"]) {
    const env = { GATEPOST_HOST: host, GATEPOST_ADMIN_PASSWORD: PASSWORD };
    const reason = new RegExp(`^Gatepost cannot start: GATEPOST_HOST: .*${RegExp.escape(host)}`);
    assertRefused(await tryStartHere(folder, env), reason);
  }
});

test("a data folder that cannot be created: one line, exit 1", async (t) => {
  const folder = await writeFolder(t, { file: "here" });
  const file = join(folder, "file");
  const env = { GATEPOST_DATABASE: join(file, "data/gatepost.db") };
  assertRefused(await tryStartHere(folder, env), /file is not a folder/);
  assert.deepEqual(readFolder(folder), { file: Buffer.from("here").toString("base64") });
});

onLinux("a database below /proc, which keeps no files: one line, exit 1", async (t) => {
  const env = { GATEPOST_DATABASE: "/proc/none/gatepost.db" };
  assertRefused(await tryStartHere(await writeFolder(t, {}), env), /\/proc keeps no files/);
});

onLinux("a named pipe, or a link to one, as the file of a secret: a line, exit 2", async (t) => {
  const folder = await writeFolder(t, {});
  await once(spawn("mkfifo", [join(folder, "pipe")]), "exit");
  symlinkSync("pipe", join(folder, "link"));
  const env = {
    GATEPOST_PORT: "0",
    GATEPOST_METRICS_TOKEN_FILE: join(folder, "pipe"),
    GATEPOST_SECRET_KEY_FILE: join(folder, "link"),
  };
  const { code, stderr } = await run(process.execPath, [SOURCE_ENTRY], env);
  assert.match(stderr, /^GATEPOST_SECRET_KEY_FILE: cannot be read: \S+link is a named pipe\n/);
  assert.match(stderr, /\nGATEPOST_METRICS_TOKEN_FILE: cannot be read: \S+pipe is a named pipe\n$/);
  assert.equal(code, 2);
});

test("a working folder that was removed: one line that says so, exit 1", async (t) => {
  const folder = await writeFolder(t, {});
  const script = 'mkdir "$1/gone" && cd "$1/gone" && rmdir ../gone && exec "$2" "$3"';
  const args = ["-c", script, "sh", folder, process.execPath, SOURCE_ENTRY];
  const result = await run("sh", args, envOn(folder));
  assertRefused(result, /^Gatepost cannot start: .*working directory/);
});

test("a database that is a folder: one line, exit 1", async (t) => {
  const folder = await writeFolder(t, {});
  mkdirSync(join(folder, "gatepost.db"));
  assertRefused(await tryStartHere(folder), /is not an SQLite database/);
});

test("a database of a newer version: one line, exit 1, and no byte is changed", async (t) => {
  const folder = await makeDatabase(t);
  const connection = new DatabaseSync(join(folder, "gatepost.db"));
  connection.exec("PRAGMA user_version = 9999");
  connection.close();
  const before = readFolder(folder);
  assertRefused(await tryStartHere(folder), /schema version is 9999/);
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
    assertRefused(await tryStartHere(folder), /schema version is 9999/);
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
    const result = await tryStartHere(folder);
    assertRefused(result, says);
    assert.ok(result.stderr.includes(file), result.stderr);
    assert.ok(before.equals(readFileSync(file)));
  });
}

test("another program's database: one line, exit 1, and no byte is changed", async (t) => {
  const folder = await writeFolder(t, {});
  const connection = new DatabaseSync(join(folder, "gatepost.db"));
  connection.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  connection.close();
  const before = readFolder(folder);
  assertRefused(await tryStartHere(folder), /belongs to another program/);
  assert.deepEqual(readFolder(folder), before);
});

test("a sealed database opens only with its key, and a wrong key changes nothing", async (t) => {
  const folder = await makeDatabase(t, "sealed");
  const before = readFileSync(join(folder, "gatepost.db"));
  const wrong = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") };
  assertRefused(await tryStartHere(folder, wrong), /GATEPOST_SECRET_KEY/);
  assertRefused(await tryStartHere(folder), /GATEPOST_SECRET_KEY/);
  assert.ok(before.equals(readFileSync(join(folder, "gatepost.db"))));
  const server = await start(t, { folder, env: { GATEPOST_SECRET_KEY: SECRET_KEY } });
  assert.ok(await canLogIn(server.url, PASSWORD));
});

test("bad configuration: a line without secrets for each bad variable, exit 2", async (t) => {
  const folder = await writeFolder(t, {});
  const { code, stdout, stderr } = await tryStartHere(folder, {
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
  const wrong = await tryStartHere("", env, "--port=80");
  assert.deepEqual([version.code, version.stderr, wrong.code, wrong.stdout], [0, "", 2, ""]);
  assert.match(version.stdout, /^gatepost \d+\.\d+\.\d+@\w+\n$/);
  assert.match(wrong.stderr, /^[^\n]*takes no arguments[^\n]*GATEPOST_[^\n]*--help[^\n]*\n$/);
  assert.deepEqual([help.code, help.stdout, help.stderr], [0, wrong.stderr, ""]);
});

test("an invalid endpoint module: its file and the reason, exit 1, no database", async (t) => {
  const module = 'export const a = { method: "GET", path: "/a" };\n';
  const folder = await writeFolder(t, { "endpoints/bad.js": module });
  const endpoints = join(folder, "endpoints");
  const { code, stdout, stderr } = await tryStartHere(folder, { GATEPOST_ENDPOINTS: endpoints });
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
