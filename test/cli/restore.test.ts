import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { createEngine } from "../../src/database/engine.ts";
import { type CommandLine, openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { configOf } from "../helpers/config.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { runNode, startServer } from "../helpers/process.ts";
import { replaceFs } from "../helpers/replace_fs.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";

/** A command line with a backup that has only alice, while the database has bob too. */
async function openWithBackup(t: TestContext, env: Record<string, string> = {}) {
  const cli = await openCommandLine(t, { env });
  await cli.run("user", "add", "alice");
  const copy = join(cli.folder, "copy", "backup.db");
  mkdirSync(join(cli.folder, "copy"));
  assert.equal((await cli.run("backup", copy)).code, 0);
  await cli.run("user", "add", "bob");
  return { cli, copy };
}

async function userNames(cli: CommandLine, env: Record<string, string> = {}): Promise<unknown[]> {
  const list = await cli.runWith({ env }, "user", "list", "--json");
  assert.equal(list.code, 0, list.stderr);
  return readItems(list).map((user) => user["username"]).sort();
}

/** Restores in the last second of January 2030. */
async function restoreInJanuary(cli: CommandLine, copy: string) {
  const engine = await createEngine(configOf({ GATEPOST_DATABASE: cli.databasePath }));
  const nowMs = Date.UTC(2030, 0, 31, 23, 59, 59, 500);
  return engine.restore(copy, createSeal(), nowMs, AbortSignal.any([]));
}

/** Kills a server on the database after adding these users; their log stays. */
async function crashServer(cli: CommandLine, ...users: readonly string[]): Promise<void> {
  const server = await startServer({ entry: SOURCE_ENTRY, folder: cli.folder });
  for (const name of users) assert.equal((await cli.run("user", "add", name)).code, 0);
  await server.kill();
}

async function assertRefused(cli: CommandLine, file: string, says: RegExp): Promise<void> {
  // A server makes and removes the files of its presence at any time.
  const list = () => readdirSync(cli.folder).filter((name) => !name.includes("-process-"));
  const before = list();
  const { code, stdout, stderr } = await cli.run("restore", file);
  assert.deepEqual([code, stdout], [1, ""], stderr);
  assert.match(stderr, says);
  assert.match(stderr, /^gatepost: [^\n]+\n$/, "one line");
  assert.deepEqual(list(), before);
}

test("restore makes a private database of a backup, and keeps the old database", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const old = readFileSync(cli.databasePath);

  const restored = await cli.run("restore", copy, "--json");

  assert.equal(restored.code, 0, restored.stderr);
  const { file, bytes, kept_as: keptAs } = readJson(restored);
  assert.deepEqual([file, bytes], [cli.databasePath, statSync(copy).size]);
  assert.match(String(keptAs), /gatepost\.db\.before-\d{8}T\d{6}Z$/);
  assert.ok(readFileSync(String(keptAs)).equals(old));
  assert.equal(statSync(cli.databasePath).mode & 0o777, 0o600);
  assert.equal(readdirSync(cli.folder).length, 3, "the copy's folder, the database, the old one");
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restore keeps the old database on a file system without links too", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const old = readFileSync(cli.databasePath);
  replaceFs(t, "linkSync", () => {
    throw Object.assign(new Error("operation not permitted"), { code: "EPERM", syscall: "link" });
  });

  const restored = await cli.run("restore", copy, "--json");

  assert.equal(restored.code, 0, restored.stderr);
  assert.ok(readFileSync(String(readJson(restored)["kept_as"])).equals(old));
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restore makes the database and its folder where they do not exist", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const there = { GATEPOST_DATABASE: join(cli.folder, "new", "data", "other.db") };
  assert.equal((await cli.runWith({ env: there }, "restore", copy)).code, 0);
  assert.deepEqual(await userNames(cli, there), ["alice"]);
});

test("restore over a database of a crashed server moves its log aside too", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  await crashServer(cli);
  assert.ok(existsSync(`${cli.databasePath}-wal`));
  const log = readFileSync(`${cli.databasePath}-wal`);

  const { kept_as: keptAs } = readJson(await cli.run("restore", copy, "--json"));

  assert.ok(readFileSync(`${String(keptAs)}-wal`).equals(log));
  assert.ok(!existsSync(`${cli.databasePath}-wal`) && !existsSync(`${cli.databasePath}-shm`));
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restore keeps a symbolic link to the database, and the database's owner", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const { folder, databasePath } = cli;
  const link = join(folder, "link.db");
  symlinkSync(databasePath, link);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(databasePath, 65_534, 65_534);
  const owner = statSync(databasePath).uid;
  const restored = await cli.runWith({ env: { GATEPOST_DATABASE: link } }, "restore", copy);
  assert.equal(restored.code, 0, restored.stderr);
  assert.equal(realpathSync(link), realpathSync(databasePath));
  assert.equal(statSync(link).uid, owner);
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restore by root gives a lost database to the owner of its folder", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("nobody else may give a file away");
  const { cli, copy } = await openWithBackup(t);
  chownSync(cli.folder, 65_534, 65_534);
  rmSync(cli.databasePath);
  const restored = await cli.run("restore", copy);
  assert.equal(restored.code, 0, restored.stderr);
  const { uid, gid, mode } = statSync(cli.databasePath);
  assert.deepEqual([uid, gid, mode & 0o777], [65_534, 65_534, 0o600]);
});

test("restore refuses a backup that its user may not read", async (t) => {
  if (process.getuid?.() === 0) return t.skip("root may read everything");
  const { cli, copy } = await openWithBackup(t);
  chmodSync(copy, 0);
  await assertRefused(cli, copy, /EACCES: permission denied.*backup\.db/);
});

for (const [what, lose] of [["lost", rmSync], ["emptied", truncateSync]] as const) {
  test(`restore moves aside the log of a database that was ${what}`, async (t) => {
    const { cli, copy } = await openWithBackup(t);
    await crashServer(cli, "carol");
    lose(cli.databasePath);
    const log = readFileSync(`${cli.databasePath}-wal`);
    assert.equal((await cli.run("restore", copy)).code, 0);
    assert.ok(!existsSync(`${cli.databasePath}-wal`));
    const aside = readdirSync(cli.folder).find((name) => /before-.*-wal$/.test(name)) ?? "";
    assert.ok(readFileSync(join(cli.folder, aside)).equals(log));
    assert.deepEqual(await userNames(cli), ["alice"]);
  });
}

test("restore moves aside the journal of a database that was lost", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  // Left by a process that was killed: SQLite would apply the journal to the restored copy.
  const lost = join(cli.folder, "lost.db");
  const killed = new DatabaseSync(lost);
  t.after(() => killed.close());
  killed.exec(`PRAGMA cache_size = 1; BEGIN; CREATE TABLE t (x);
    INSERT INTO t VALUES (zeroblob(99999))`);
  rmSync(cli.databasePath);
  copyFileSync(`${lost}-journal`, `${cli.databasePath}-journal`);
  assert.equal((await cli.run("restore", copy)).code, 0);
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restore to a disk that is too small changes nothing there", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const { size } = statSync(copy);
  let bytes = 2 * size - 8192;
  const disk = mountSmallDisk(t, bytes);
  if (disk === undefined) return;
  const there = { GATEPOST_DATABASE: join(disk.folder, "gatepost.db") };
  copyFileSync(cli.databasePath, there.GATEPOST_DATABASE);
  const old = readFileSync(there.GATEPOST_DATABASE);
  let failures = 0;
  for (let restore; restore = await cli.runWith({ env: there }, "restore", copy), restore.code;) {
    assert.match(restore.stderr, /^gatepost: [^\n]*(full|I\/O error)[^\n]*\n$/);
    assert.deepEqual(readdirSync(disk.folder), ["gatepost.db"], `with room for ${bytes} bytes`);
    assert.ok(readFileSync(there.GATEPOST_DATABASE).equals(old));
    disk.resize(bytes += 4096);
    failures++;
  }
  assert.ok(failures > 2, "also where there is room for the copy alone");
});

test("restore that fails halfway leaves the old database with its log in place", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  await crashServer(cli, "carol");
  mkdirSync(`${cli.databasePath}.before-20300131T235959Z-shm`); // the last file that is moved aside
  await assert.rejects(restoreInJanuary(cli, copy), { code: "EISDIR" });
  assert.ok(!existsSync(`${cli.databasePath}.before-20300131T235959Z`));
  assert.deepEqual(await userNames(cli), ["alice", "bob", "carol"]);
});

test("restore replaces a database that cannot be opened", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  writeFileSync(cli.databasePath, "SQLite format 3\0".padEnd(9000, "x"));
  assert.equal((await cli.run("restore", copy)).code, 0);
  assert.deepEqual(await userNames(cli), ["alice"]);
});

test("restores in the same second keep the old databases under different names", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const names = [];
  for (const _ of [1, 2, 3]) {
    const { keptAs } = await restoreInJanuary(cli, copy);
    names.push(keptAs?.replace(/^.*before-/, ""));
  }
  assert.deepEqual(names, ["20300131T235959Z", "20300201T000000Z", "20300201T000001Z"]);
});

for (const cron of ["on", "off"]) {
  test(`restore refuses while a server runs with cron ${cron}`, async (t) => {
    const { cli, copy } = await openWithBackup(t);
    const server = await startServer({
      entry: SOURCE_ENTRY,
      folder: cli.folder,
      env: { GATEPOST_CRON: cron },
    });
    await assertRefused(cli, copy, /A process works on/).finally(() => server.stop());
    assert.deepEqual(await userNames(cli), ["alice", "bob"]);
  });
}

test("restore refuses a file that is not a sound backup, and changes nothing", async (t) => {
  const { cli, copy } = await openWithBackup(t);
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(cli.folder, "copy", name);
    writeFileSync(path, content);
    return path;
  };
  const make = (name: string, sql: string) => {
    const path = write(name, readFileSync(copy));
    using database = new DatabaseSync(path);
    database.exec(sql);
    return path;
  };
  const text = write("text", "x".repeat(9000));
  const empty = write("empty.db", "");
  const spoiled = write("spoiled.db", readFileSync(copy).fill(0x5a, 40_960, 81_920));
  const page = write("page.db", readFileSync(copy).fill(0x5a, statSync(copy).size - 4096));
  const fifo = join(cli.folder, "copy", "fifo");
  spawnSync("mkfifo", [fifo]);
  const logged = make("logged.db", "");
  writeFileSync(`${logged}-wal`, "a log");

  const nowhere = { GATEPOST_DATABASE: "/proc/none/my.db" };
  const { code, stderr } = await cli.runWith({ env: nowhere }, "restore", copy);
  const says = "gatepost: Database /proc/none/my.db: /proc keeps no files.\n";
  assert.deepEqual([code, stderr], [1, says]);
  await assertRefused(cli, join(cli.folder, "nothing.db"), /ENOENT/);
  await assertRefused(cli, text, /is not a database, or is damaged/);
  await assertRefused(cli, empty, /holds no database of Gatepost/);
  await assertRefused(cli, spoiled, /spoiled\.db is not a database, or is damaged/);
  await assertRefused(cli, page, /page\.db is not a database, or is damaged/);
  await assertRefused(cli, fifo, /not a regular file/);
  await assertRefused(cli, logged, /has a log beside it/);
  await assertRefused(cli, cli.databasePath, /is the database itself/);
  await assertRefused(cli, make("newer.db", "PRAGMA user_version = 999"), /schema version is 999/);
  await assertRefused(cli, make("other.db", "PRAGMA application_id = 7"), /another program/);
  assert.deepEqual(await userNames(cli), ["alice", "bob"]);
});

test("the check of a backup names a file that its user may not read", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("only root may become another user");
  const { cli, copy } = await openWithBackup(t);
  const program = `process.setgid(65534); process.setuid(65534);
    const { checkSource } = await import("${import.meta.resolve("../../src/database/restore.ts")}");
    checkSource(${JSON.stringify(copy)}, ${JSON.stringify(cli.databasePath)});`;
  for (const folder of [cli.folder, dirname(copy)]) chmodSync(folder, 0o755);
  const { stderr } = await runNode(["--input-type=module", "-e", program]);
  assert.match(stderr, /EACCES: permission denied, access '\S+backup\.db'/);
});

test("restore refuses an encrypted backup that the configured key cannot decrypt", async (t) => {
  const env = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
  const { cli, copy } = await openWithBackup(t, env);
  const wrong = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") };
  const refused = await cli.runWith({ env: wrong }, "restore", copy);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /GATEPOST_SECRET_KEY is not the key/);
  assert.deepEqual(await userNames(cli), ["alice", "bob"]);
});
