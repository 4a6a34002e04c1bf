import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { backUpSqlite } from "../../src/database/backup.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { makeFolder, openSqliteFile } from "../helpers/database.ts";
import { replaceFs } from "../helpers/replace_fs.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const BACKUP = pathToFileURL(join(ROOT, "src/database/backup.ts")).href;

test("backUpSqlite() works under Node's permission model, and writes only the copy", (t) => {
  const folder = makeFolder(t);
  openSqliteFile(t, join(folder, "gatepost.db"));
  const script = `const { backUpSqlite } = await import("${BACKUP}");
    const [path, target] = ${JSON.stringify(["gatepost.db", "copy.db"].map((file) =>
      join(folder, file)
    ))};
    await backUpSqlite(path, target, new AbortController().signal);`;
  const before = readdirSync(folder);

  const { stderr, status } = spawnSync(process.execPath, [
    "--permission",
    `--allow-fs-read=${ROOT}`,
    `--allow-fs-read=${folder}`,
    `--allow-fs-write=${folder}`,
    "--input-type=module",
    "--eval",
    script,
  ], { encoding: "utf8" });

  assert.equal(status, 0, stderr);
  assert.deepEqual(readdirSync(folder).sort(), [...before, "copy.db"].sort());
});

test("a copy contains what was stored when it began, although others write", async (t) => {
  const { folder, path, connection, count } = fill(t, 700);
  const { signal } = new AbortController();
  let written = 0;
  // The copy calls this after each step.
  t.mock.method(signal, "throwIfAborted", () => {
    connection.exec(`INSERT INTO settings (name, value) VALUES ('late ${written++}', '')`);
  });
  const copy = join(folder, "copy.db");
  await backUpSqlite(path, copy, signal);
  assert.ok(written > 2, `${written} steps`);
  assert.deepEqual([count(copy), count(path)], [700, 700 + written]);
});

test("a copy has the tables and indexes of the database, and no others", async (t) => {
  const { folder, path } = fill(t, 1);
  const copy = join(folder, "copy.db");
  await backUpSqlite(path, copy, AbortSignal.any([]));
  const [found, made] = [path, copy].map((file) => {
    using reader = new DatabaseSync(file);
    return reader.prepare("SELECT name FROM sqlite_schema").all().map(({ name }) => name);
  });
  assert.ok(found && found.length > 10);
  assert.deepEqual(made, found);
});

test("a backup whose file cannot be created fails with the error of the system", async (t) => {
  const { folder, path } = fill(t, 1);
  const error = Object.assign(new Error("disk quota exceeded"), { code: "EDQUOT" });
  const restore = replaceFs(t, "writeFileSync", () => assert.fail(error));
  const backup = backUpSqlite(path, join(folder, "copy.db"), AbortSignal.any([]));
  await assert.rejects(backup, error).finally(restore);
});

test("a backup that is interrupted fails with the reason and leaves no file", async (t) => {
  const { folder, path } = fill(t, 1);
  const reason = new Error("Interrupted.");
  const backup = backUpSqlite(path, join(folder, "copy.db"), AbortSignal.abort(reason));
  await assert.rejects(backup, reason);
  assert.deepEqual(readdirSync(folder).filter((name) => name.startsWith("copy")), []);
});

test("a backup of a damaged database fails with one line and leaves no file", async (t) => {
  const { folder, path, connection } = fill(t, 10);
  connection.close();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0x5a, bytes.length - 4096));
  const backup = backUpSqlite(path, join(folder, "copy.db"), AbortSignal.any([]));
  await assert.rejects(backup, {
    name: "UnusableDatabaseError",
    message: /^The database is damaged: [^\n]+$/,
  });
  assert.deepEqual(readdirSync(folder), ["gatepost.db"]);
});

/** Makes a database with settings of 10 kB, a connection to it, and a counter of settings. */
function fill(t: TestContext, rows: number) {
  const folder = makeFolder(t);
  const path = join(folder, "gatepost.db");
  prepareSqliteFile(path);
  const connection = new DatabaseSync(path);
  t.after(() => connection.isOpen && connection.close());
  const insert = connection.prepare("INSERT INTO settings (name, value) VALUES (?, ?)");
  connection.exec("BEGIN");
  for (let row = 0; row < rows; row++) insert.run(`k${row}`, "x".repeat(10_000));
  connection.exec("COMMIT");
  const count = (file: string) => {
    using reader = new DatabaseSync(file, { readOnly: true });
    return reader.prepare("SELECT count(*) AS count FROM settings").get()?.["count"];
  };
  return { folder, path, connection, count };
}
