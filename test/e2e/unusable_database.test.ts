// On SQLite alone: it is about the file.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { hash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test, type TestContext } from "node:test";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { sql } from "../../src/database/sql.ts";
import { openCommandLine } from "../helpers/command_line.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { runNode, startServer } from "../helpers/process.ts";

let template = "";

before(async () => {
  template = mkdtempSync(join(tmpdir(), "gatepost-template-"));
  await fill(join(template, "gatepost.db"), 100);
});
after(() => rmSync(template, { recursive: true }));

/** Makes a database as an orderly stop leaves it, with rows of ten kilobytes. */
async function fill(path: string, rows: number): Promise<void> {
  const database = openSqliteDatabase(path);
  for (let row = 0; row < rows; row += 50) {
    const ids = Array.from({ length: 50 }, (_, at) => `t${String(row + at).padStart(6, "0")}`);
    await database.write(ids.map((id) =>
      sql`INSERT INTO audit (id, actor, action, target)
        VALUES (${id}, 'test', 'fill', ${"x".repeat(10_000)})`
    ));
  }
  await database.close();
}

/** The digests of a folder's files; none of a `-shm` file, which readers may write. */
function readFolder(folder: string): Record<string, string> {
  const digest = (name: string) => hash("sha256", readFileSync(join(folder, name)));
  const names = readdirSync(folder).sort();
  return Object.fromEntries(
    names.map((name) => [name, name.endsWith("-shm") ? "" : digest(name)]),
  );
}

/** Start and check must say the same in one line, exit 1 and leave every file as it was. */
async function assertUnusable(t: TestContext, folder: string, says: RegExp): Promise<void> {
  const cli = await openCommandLine(t, { folder, ownProcess: true });
  const found = readFolder(folder);
  const env = { GATEPOST_PORT: "0", GATEPOST_DATABASE: cli.databasePath };
  const start = await runNode([SOURCE_ENTRY], { env });
  assert.deepEqual([start.code, start.stdout], [1, ""], start.stderr);
  assert.match(start.stderr, /^Database \/[^\n]+\n$/, "one line");
  assert.match(start.stderr, says);
  const check = await cli.run("check");
  assert.equal(check.code, 1);
  assert.ok(check.stderr.includes(start.stderr), check.stderr);
  assert.deepEqual(readFolder(folder), found);
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-unusable-"));
  t.after(() => rmSync(folder, { recursive: true }));
  copyFileSync(join(template, "gatepost.db"), join(folder, "gatepost.db"));
  return folder;
}

function change(file: string, text: string): void {
  const connection = new DatabaseSync(file);
  connection.exec(text);
  connection.close();
}

/** Overwrites each tenth page but the first. */
function spoilPages(file: string): void {
  const bytes = readFileSync(file);
  for (let at = 10 * 4096; at < bytes.length; at += 10 * 4096) bytes.fill(0xa5, at, at + 4096);
  writeFileSync(file, bytes);
}

const SPOILED: readonly (readonly [what: string, spoil: (file: string) => void, says: RegExp])[] = [
  ["with one page overwritten", (file) => {
    const bytes = readFileSync(file);
    const at = bytes.indexOf("t000050");
    bytes.fill(0xa5, at - at % 4096, at - at % 4096 + 4096);
    writeFileSync(file, bytes);
  }, /is damaged/],
  ["with a tenth of its pages overwritten", spoilPages, /is damaged/],
  ["without its last two pages", (file) => {
    writeFileSync(file, readFileSync(file).subarray(0, -8192));
  }, /is damaged/],
  ["that claims to be empty and is not", (file) => change(file, "PRAGMA user_version = 0"),
    /not that of version 0.*settings already exists/],
  ["that claims an older version than it has", (file) => change(file, "PRAGMA user_version = 1"),
    /not that of version 1, which it claims to have: \S/],
  ["that has lost a table", (file) => change(file, "DROP TABLE audit"), /audit\S* is missing/],
];

for (const [what, spoil, says] of SPOILED) {
  test(`start and check both refuse a database ${what}`, async (t) => {
    const folder = makeFolder(t);
    spoil(join(folder, "gatepost.db"));
    await assertUnusable(t, folder, says);
  });
}

test("start and check both refuse a large database with damaged pages, too", async (t) => {
  const folder = makeFolder(t);
  const file = join(folder, "gatepost.db");
  rmSync(file);
  await fill(file, 3_500);
  spoilPages(file);
  await assertUnusable(t, folder, /is damaged/);
});

test("a database beside another's write-ahead log is refused, and the line says so", async (t) => {
  const folder = makeFolder(t);
  const file = join(folder, "gatepost.db");
  const database = openSqliteDatabase(file);
  await database.write([sql`DELETE FROM audit WHERE id BETWEEN 't000020' AND 't000060'`]);
  // What a crash leaves: a log that the file needs. Then a copy is put in the file's place.
  const logs = ["-wal", "-shm"].map((suffix) => [suffix, readFileSync(file + suffix)] as const);
  await database.close();
  const copy = openSqliteDatabase(join(folder, "copy.db"));
  await copy.close();
  copyFileSync(join(folder, "copy.db"), file);
  rmSync(join(folder, "copy.db"));
  for (const [suffix, bytes] of logs) writeFileSync(file + suffix, bytes);
  await assertUnusable(t, folder, /is damaged.*log beside it.*not its own/);
});

test("a database path in a loop of symbolic links is refused", async (t) => {
  const folder = makeFolder(t);
  rmSync(join(folder, "gatepost.db"));
  symlinkSync("other.db", join(folder, "gatepost.db"));
  symlinkSync("gatepost.db", join(folder, "other.db"));
  const cli = await openCommandLine(t, { folder, ownProcess: true });
  const env = { GATEPOST_PORT: "0", GATEPOST_DATABASE: cli.databasePath };
  const start = await runNode([SOURCE_ENTRY], { env });
  assert.deepEqual([start.code, start.stdout], [1, ""], start.stderr);
  assert.match(start.stderr, /^Database \/[^\n]+ELOOP[^\n]+\n$/, "one line");
  const check = await cli.run("check");
  assert.equal(check.code, 1);
  assert.ok(check.stderr.includes(start.stderr), check.stderr);
});

test("a write-ahead log without its database is refused, and kept", async (t) => {
  const folder = makeFolder(t);
  const file = join(folder, "gatepost.db");
  const database = openSqliteDatabase(file);
  await database.write([sql`DELETE FROM audit WHERE id = 't000020'`]);
  const log = readFileSync(`${file}-wal`);
  await database.close();
  rmSync(file);
  writeFileSync(`${file}-wal`, log);
  await assertUnusable(t, folder, /log \(-wal\) is there/);
});

test("a database that another process keeps locked is refused", async (t) => {
  const folder = makeFolder(t);
  // In a process of its own: this one reads the file, and would lose its locks by that.
  const program = `const { DatabaseSync } = await import("node:sqlite");
    const locker = new DatabaseSync(${JSON.stringify(join(folder, "gatepost.db"))});
    locker.exec("BEGIN IMMEDIATE");
    console.log("locked");
    setTimeout(() => locker.close(), 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  await assertUnusable(t, folder, /write lock for too long/).finally(() => child.kill("SIGKILL"));
});

/** A file system of 8 MiB with a database; undefined, with a note, if none can be mounted. */
function mountSmallDisk(t: TestContext): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-disk-"));
  t.after(() => {
    spawnSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true });
  });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "none", folder]);
  if (mounted.status !== 0) return void t.diagnostic("not run: needs root, to mount");
  copyFileSync(join(template, "gatepost.db"), join(folder, "gatepost.db"));
  return folder;
}

test("a database on a read-only file system is refused", async (t) => {
  const folder = mountSmallDisk(t);
  if (folder === undefined) return;
  assert.equal(spawnSync("mount", ["-o", "remount,ro", folder]).status, 0);
  await assertUnusable(t, folder, /EROFS/);
});

// With room for the log's index alone, the first write of the start fails.
for (const freeBytes of [0, 36 * 1024]) {
  test(`a start with ${freeBytes} bytes free says in one line that the disk is full`, async (t) => {
    const folder = mountSmallDisk(t);
    if (folder === undefined) return;
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(join(folder, "filler"), Buffer.alloc(bavail * bsize - freeBytes));
    const { code, stdout, stderr } = await runNode([SOURCE_ENTRY], {
      env: {
        GATEPOST_PORT: "0",
        GATEPOST_DATABASE: join(folder, "gatepost.db"),
        GATEPOST_ADMIN_PASSWORD: "correct-horse",
      },
    });
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, /^[^\n]*disk is full[^\n]*\n$/, "one line");
  });
}

test("a first start on a full disk names the database and leaves nothing behind", async (t) => {
  const folder = mountSmallDisk(t);
  if (folder === undefined) return;
  const { bavail, bsize } = statfsSync(folder);
  const filler = join(folder, "filler");
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
  const data = join(folder, "new/data");
  const env = { GATEPOST_PORT: "0", GATEPOST_DATABASE: join(data, "gatepost.db") };

  const { code, stdout, stderr } = await runNode([SOURCE_ENTRY], { env });

  assert.deepEqual([code, stdout], [1, ""], stderr);
  assert.match(stderr, /^Database \S+\/new\/data\/gatepost\.db: [^\n]*disk is full[^\n]*\n$/);
  assert.deepEqual(readdirSync(folder).sort(), ["filler", "gatepost.db"]);

  rmSync(filler);
  mkdirSync(data, { recursive: true });
  writeFileSync(env.GATEPOST_DATABASE, ""); // as an older version would have left it
  const server = await startServer({ entry: SOURCE_ENTRY, folder: data });
  assert.equal(await server.stop(), 0);
  assert.deepEqual(server.lines.filter((line) => line.includes("migrated")), []);
});

/** What judgeDatabase() says about a database to user nobody; undefined without root. */
async function judgeAsNobody(t: TestContext, path: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return void t.diagnostic("not run: needs root, to change user");
  const source = (path: string) => JSON.stringify(import.meta.resolve(`../../src/${path}`));
  const program = `process.setgid(65534); process.setuid(65534);
    const { judgeDatabase } = await import(${source("database/judge.ts")});
    const { createSeal } = await import(${source("base/seal.ts")});
    console.log(judgeDatabase(${JSON.stringify(path)}, createSeal(undefined)).reason);`;
  const { stdout, stderr } = await runNode(["--input-type=module", "-e", program]);
  return stdout + stderr;
}

test("a database that the user may not write is refused", async (t) => {
  const folder = makeFolder(t);
  const cli = await openCommandLine(t, { folder, ownProcess: true });
  spawnSync("chmod", ["755", folder]);
  const reason = await judgeAsNobody(t, cli.databasePath);
  if (reason !== undefined) assert.match(reason, /^EACCES: permission denied/);
  assert.deepEqual(readdirSync(folder), ["gatepost.db"]);
});

test("a database whose log the user may not write is refused, and the log is named", async (t) => {
  const folder = makeFolder(t);
  const path = join(folder, "gatepost.db");
  const database = openSqliteDatabase(path);
  t.after(() => database.close());
  await database.write([sql`INSERT INTO settings (name, value) VALUES ('a', 'b')`]);
  spawnSync("chown", ["65534", folder, path]);
  const reason = await judgeAsNobody(t, path);
  if (reason !== undefined) assert.match(reason, /^EACCES: permission denied, \S+ '\S+db-wal'/);
});
