import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import fs, {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { acquirePresence } from "../../src/database/presence.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { put } from "../helpers/put.ts";
import { replaceFs } from "../helpers/replace_fs.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";

/** Makes the database larger, with `count` rows of ten kilobytes. */
function fill(path: string, count: number): void {
  const database = new DatabaseSync(path);
  const insert = database.prepare(
    "INSERT INTO audit (id, actor, action, target) VALUES (?, 'test', 'fill', ?)",
  );
  database.exec("BEGIN");
  for (let row = 0; row < count; row++) insert.run(`t${row}`, "x".repeat(10_000));
  database.exec("COMMIT");
  database.close();
}

/** A command line whose database has user alice, and the name of a copy of the database. */
async function openWithAlice(t: TestContext, options: { readonly ownProcess?: boolean } = {}) {
  const cli = await openCommandLine(t, options);
  await cli.run("user", "add", "alice");
  return { cli, copy: join(cli.folder, "copy.db") };
}

/** Waits until a backup is under way; fails if its process ends first. */
async function waitForPartial(copy: string, child: ChildProcess): Promise<void> {
  while (!existsSync(`${copy}.partial`)) {
    assert.equal(child.exitCode ?? child.signalCode, null, "it ended first");
    await sleep(1);
  }
}

test("backup makes a private copy that the command line and SQLite open", async (t) => {
  const { cli, copy } = await openWithAlice(t);

  const backup = await cli.run("backup", copy, "--json");

  assert.equal(backup.code, 0, backup.stderr);
  assert.deepEqual(readJson(backup), { file: copy, bytes: statSync(copy).size });
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(cli.folder).sort(), ["copy.db", "gatepost.db"]);
  const users = await cli.runWith({ env: { GATEPOST_DATABASE: copy } }, "user", "list", "--json");
  assert.deepEqual(readItems(users).map((user) => user["username"]), ["alice"]);
});

test("backup of another program's database, or a newer one, is refused in one line", async (t) => {
  for (const [change, says] of [
    ["PRAGMA application_id = 7", /belongs to another program/],
    ["PRAGMA user_version = 9999", /schema version is 9999/],
  ] as const) {
    const cli = await openCommandLine(t);
    await cli.run("user", "list");
    const connection = new DatabaseSync(cli.databasePath);
    connection.exec(change);
    connection.close();
    const before = readFileSync(cli.databasePath);
    const { code, stderr } = await cli.run("backup", join(cli.folder, "copy.db"));
    assert.equal(code, 1);
    assert.match(stderr, says);
    assert.match(stderr, /^gatepost: Database [^\n]+\n$/);
    assert.deepEqual(readdirSync(cli.folder), ["gatepost.db"]);
    assert.ok(readFileSync(cli.databasePath).equals(before));
  }
});

test("backup to a disk that is too small leaves nothing there", async (t) => {
  const { cli } = await openWithAlice(t);
  let bytes = statSync(cli.databasePath).size - 8192;
  const disk = mountSmallDisk(t, bytes);
  if (disk === undefined) return;
  const copy = join(disk.folder, "copy.db");
  let failures = 0;
  for (let backup; backup = await cli.run("backup", copy), backup.code !== 0; failures++) {
    assert.match(
      backup.stderr,
      /^gatepost: (\S+copy\.db\.partial: [^\n]* full|[^\n]*I\/O error)[^\n]*\n$/,
    );
    assert.deepEqual(readdirSync(disk.folder), [], `with room for ${bytes} bytes`);
    disk.resize(bytes += 4096);
  }
  assert.ok(failures > 2, "also where there is room for the copy alone");
});

test("backup refuses to replace a file, and leaves it unchanged", async (t) => {
  const { cli, copy } = await openWithAlice(t);
  writeFileSync(copy, "precious");

  const refused = await cli.run("backup", copy);

  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /copy\.db is there already/);
  assert.equal(readFileSync(copy, "utf8"), "precious");
});

test("backup does not replace a file that appears while the copy is made", async (t) => {
  const { cli, copy } = await openWithAlice(t);
  const link = fs.linkSync;
  replaceFs(t, "linkSync", (from, to) => {
    writeFileSync(copy, "precious");
    link(from, to);
  });

  const refused = await cli.run("backup", copy);

  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /copy\.db is there already/);
  assert.equal(readFileSync(copy, "utf8"), "precious");
  assert.deepEqual(readdirSync(cli.folder).sort(), ["copy.db", "gatepost.db"]);
});

test("backup refuses the name of a link to a missing file", async (t) => {
  const { cli, copy: link } = await openWithAlice(t);
  symlinkSync(join(cli.folder, "unmounted", "copy.db"), link);
  const refused = await cli.run("backup", link);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /copy\.db is there already/);
  assert.ok(lstatSync(link).isSymbolicLink());
});

test("backup refuses the names of the database's own files", async (t) => {
  const { cli } = await openWithAlice(t);
  const link = join(cli.folder, "link");
  symlinkSync(cli.folder, link);
  for (const end of ["journal", "wal", "shm", "process-c1"]) {
    const { code, stderr } = await cli.run("backup", join(link, `gatepost.db-${end}`));
    assert.equal(code, 1);
    assert.match(stderr, /^gatepost: \S+gatepost\.db-\S+ is a name that [^\n]+\n$/);
  }
  assert.deepEqual(readdirSync(cli.folder).sort(), ["gatepost.db", "link"]);
  assert.equal((await cli.run("backup", join(cli.folder, "gatepost.db-2026"))).code, 0);
});

test("backup fails in one line where there is no database or no folder", async (t) => {
  const cli = await openCommandLine(t);
  const missing = await cli.run("backup", join(cli.folder, "copy.db"));
  await cli.run("user", "add", "alice");
  const nowhere = await cli.run("backup", join(cli.folder, "no/copy.db"));

  for (const { code, stdout, stderr } of [missing, nowhere]) {
    assert.deepEqual([code, stdout, stderr.split("\n").length], [1, "", 2], stderr);
  }
  assert.match(nowhere.stderr, /ENOENT: [^\n]*'\S+\/no'/, "the path that the operator gave");
  assert.deepEqual(readdirSync(cli.folder), ["gatepost.db"]);
});

test("backup leaves another backup's partial file alone", async (t) => {
  const { cli, copy } = await openWithAlice(t);
  writeFileSync(`${copy}.partial`, "another's");

  const refused = await cli.run("backup", copy);

  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /copy\.db\.partial is there already.*If none runs, remove it\.\n$/);
  assert.equal(readFileSync(`${copy}.partial`, "utf8"), "another's");
  assert.ok(!existsSync(copy));
});

test("backup of a damaged database fails and leaves no copy", async (t) => {
  const { cli, copy } = await openWithAlice(t);
  fill(cli.databasePath, 100);
  const bytes = readFileSync(cli.databasePath);
  bytes.fill(0x5a, 60_000, 120_000); // whole pages in the middle
  writeFileSync(cli.databasePath, bytes);

  const refused = await cli.run("backup", copy);

  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /damaged|malformed/);
  assert.deepEqual(readdirSync(cli.folder).filter((name) => name.startsWith("copy")), []);
});

test("backup during writes has one state: each batch whole or not at all", async (t) => {
  const { cli, copy } = await openWithAlice(t, { ownProcess: true });
  fill(cli.databasePath, 2_000);
  const database = openSqliteDatabase(cli.databasePath);
  let batches = 0;
  let isDone = false;
  // Each batch stores a pair of settings; a copy with half of one would not be consistent.
  const writing = (async () => {
    while (!isDone) {
      batches++;
      const value = "x".repeat(2_000);
      await database.write(["a", "b"].map((half) => put(`${half}${batches}`, value)));
    }
  })();

  const before = batches;
  const backup = await cli.run("backup", copy);
  const after = batches;
  isDone = true;
  await writing;
  await database.close();

  assert.equal(backup.code, 0, backup.stderr);
  assert.ok(after > before + 10, `${after - before} batches were written meanwhile`);
  const connection = new DatabaseSync(copy, { readOnly: true });
  const { halves, pairs } = { ...connection.prepare(
    `SELECT count(*) AS halves, count(DISTINCT substr(name, 2)) AS pairs
     FROM settings WHERE name GLOB '[ab][0-9]*'`,
  ).get() };
  const check = connection.prepare("PRAGMA integrity_check").get();
  connection.close();
  assert.equal(halves, Number(pairs) * 2);
  assert.ok(Number(pairs) >= before && Number(pairs) <= after);
  assert.deepEqual({ ...check }, { integrity_check: "ok" });
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`backup that ${signal} interrupts exits 1 and leaves nothing behind`, async (t) => {
    const { cli, copy } = await openWithAlice(t);
    fill(cli.databasePath, 10_000);
    const child = cli.start("backup", copy);
    const exited = once(child, "exit");

    await waitForPartial(copy, child);
    child.kill(signal);
    const [code] = await exited;

    assert.equal(code, 1);
    assert.deepEqual(readdirSync(cli.folder).filter((name) => name.startsWith("copy")), []);
  });
}

test("backup removes the files that killed backups have left in its folder", async (t) => {
  const { cli } = await openWithAlice(t);
  fill(cli.databasePath, 10_000);
  const copies = () => readdirSync(cli.folder).filter((name) => !name.startsWith("gatepost.db"));
  const monday = join(cli.folder, "monday.db");
  for (const copy of [monday, join(cli.folder, "tuesday.db")]) {
    const child = cli.start("backup", copy);
    const exited = once(child, "exit");
    await waitForPartial(copy, child);
    child.kill("SIGKILL");
    await exited;
  }
  assert.ok(copies().includes("tuesday.db.partial"), "it was killed too late");

  const backup = await cli.run("backup", monday);

  assert.equal(backup.code, 0, backup.stderr);
  assert.deepEqual(copies(), ["monday.db"]);
});

test("backup does not remove the file of a running backup into the same folder", async (t) => {
  const { cli, copy } = await openWithAlice(t);
  const presence = acquirePresence(join(cli.folder, ".gatepost-copy"), "c1-copy.db.partial");
  t.after(presence.close);
  writeFileSync(`${copy}.partial`, "half of it");

  const same = await cli.run("backup", copy);
  const beside = await cli.run("backup", join(cli.folder, "other.db"));

  assert.deepEqual([same.code, beside.code], [1, 0], same.stderr + beside.stderr);
  assert.match(same.stderr, /copy\.db\.partial is there already/);
  assert.equal(readFileSync(`${copy}.partial`, "utf8"), "half of it");
});

test("backup of an encrypted database needs no key, and the copy is encrypted", async (t) => {
  const cli = await openCommandLine(t);
  const env = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
  await cli.runWith({ env }, "user", "add", "alice");
  const copy = join(cli.folder, "copy.db");

  assert.equal((await cli.run("backup", copy)).code, 0);

  const unopened = await cli.runWith({ env: { GATEPOST_DATABASE: copy } }, "user", "list");
  assert.equal(unopened.code, 1);
  assert.match(unopened.stderr, /sealed.*GATEPOST_SECRET_KEY is missing/);
  const opened = await cli.runWith({ env: { ...env, GATEPOST_DATABASE: copy } }, "user", "list");
  assert.equal(opened.code, 0);
});

test("backup to standard output or to a device is refused in one line", async (t) => {
  const { cli } = await openWithAlice(t);
  const dash = await cli.run("backup", "-");
  const device = await cli.run("backup", "/dev/null");
  assert.deepEqual([dash.code, device.code], [2, 1]);
  assert.match(dash.stderr, /never to standard output/);
  assert.match(device.stderr, /^gatepost: \/dev\/null is not a regular file.*\n$/);
  assert.deepEqual(readdirSync(cli.folder), ["gatepost.db"]);
});
