import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { UnusableDatabaseError } from "../../src/database/database.ts";
import { judgeDatabase } from "../../src/database/judge.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { NEWEST_VERSION } from "../../src/database/migrations.ts";
import { FILL_LAST } from "../../src/database/old_versions.ts";
import { SCHEMA } from "../../src/database/schema.ts";
import { makeFolder } from "../helpers/database.ts";
import { openEmptyOldDatabase, writeOldDatabase } from "../helpers/old_database.ts";
import { OLD_MIGRATIONS } from "../helpers/old_migrations.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";
import { newFile, pragmas, run } from "./sqlite_stage.ts";

test("prepareSqliteFile() leaves a database of the newest version unchanged", (t) => {
  const path = newFile(t);
  run(path, "INSERT INTO settings (name, value) VALUES ('a', '1')");
  const before = readFileSync(path);
  prepareSqliteFile(path);
  assert.deepEqual(readFileSync(path), before);
});

/** The newest version whose statements are kept. Today's are added with the next version. */
const NEWEST_KEPT = OLD_MIGRATIONS.length + 1;

for (let version = 1; version <= NEWEST_KEPT; version++) {
  if (version === 2) continue; // of no release: see below
  test(`prepareSqliteFile() migrates version ${version} to the schema of a new file`, (t) => {
    const [path, newest] = [writeVersion(t, version), writeVersion(t, NEWEST_KEPT)];
    prepareSqliteFile(path);
    prepareSqliteFile(newest);
    assert.deepEqual(pragmas(path, ["user_version"]), [NEWEST_VERSION]);
    assert.deepEqual(schemaOf(path), schemaOf(newFile(t)));
    assert.deepEqual(contentOf(path), contentOf(newest));
  });
}

test("prepareSqliteFile() refuses version 2, which no release had, and changes nothing", (t) => {
  const path = writeVersion(t, 2);
  const before = readFileSync(path);
  assert.throws(() => prepareSqliteFile(path), UnusableDatabaseError);
  assert.deepEqual(readFileSync(path), before);
  const state = judgeDatabase(path, createSeal());
  const reason = state.kind === "unusable" ? state.reason : "";
  assert.match(reason, /^Its schema is not that of version 2, which it claims to have: /);
});

test("the statements of every older version are kept", () => {
  assert.ok(NEWEST_KEPT >= NEWEST_VERSION - 1);
});

/** Writes a database of 0.1.0, migrated to `version` by the statements of that time. */
function writeVersion(t: TestContext, version: number): string {
  const path = join(makeFolder(t), "gatepost.db");
  writeOldDatabase(path);
  // Subscriptions through apps: with live grants, with revoked ones, without any, and with those
  // of the same user through another app.
  run(path, `INSERT INTO grants (id, app, user, type, scope, refresh_until, access_until,
        revoked_at)
      SELECT 'g0mwr1mcfb000q5miezoaj8u0', id, 'u2', 'password', 'consumer', 0, 0, 1
        FROM apps LIMIT 1;
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
      SELECT 's' || user || app, user, app, 'e', 'https://a/', 'active', '', 1800000000000
        FROM grants WHERE app <> 'login' AND user IS NOT NULL GROUP BY 1
      UNION ALL SELECT 's1', 'u1', 'a1', 'e', 'https://a/', 'paused', '', 0
      UNION ALL SELECT 's2', 'u2', 'a1', 'e', 'https://b/', 'active', '', 0;
    UPDATE subscriptions SET standing = 'proven' WHERE id = 's1'`);
  run(path, `${OLD_MIGRATIONS.slice(0, version - 1).join("")}; PRAGMA user_version = ${version}`);
  if (version >= 12) run(path, FILL_LAST); // as its program did with each attempt
  return path;
}

test("prepareSqliteFile() copies the result of the last attempt to its delivery", (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  using old = openEmptyOldDatabase(path);
  old.exec(`
    INSERT INTO subscriptions (seq, id, principal, app, event, endpoint, status, secret, created_at)
      VALUES (1, 's1', 'u1', 'login', 'e', 'https://a/', 'active', '', 1);
    INSERT INTO deliveries (id, event, subscription, status, attempt, due_at)
      SELECT value, 'e1', 1, 'failed', 1, 9 FROM json_each('["d1", "d2", "d3"]');
    INSERT INTO attempts (delivery, at, attempt, status, error, duration_ms) VALUES
      ('d1', 1, 1, NULL, 'timeout', 5), ('d1', 2, 2, 503, NULL, 5),
      ('d2', 8, 4, 500, NULL, 5), ('d2', 9, 1, NULL, 'refused', 5)`);
  prepareSqliteFile(path);
  using connection = new DatabaseSync(path);
  const found = connection.prepare("SELECT id, lastStatus, lastError FROM deliveries");
  assert.deepEqual(found.all().map((row) => Object.values(row)),
    [["d1", 503, null], ["d2", null, "refused"], ["d3", null, null]]);
});

test("prepareSqliteFile() turns the write-ahead log on if a killed migration has not", (t) => {
  const path = newFile(t);
  run(path, "PRAGMA journal_mode = DELETE");
  prepareSqliteFile(path);
  assert.deepEqual(pragmas(path, ["journal_mode"]), ["wal"]);
});

for (const [what, make, change] of [
  ["making a database", () => {}, SCHEMA],
  ["changing one without a log", (path: string) => {
    prepareSqliteFile(path);
    run(path, `PRAGMA journal_mode = DELETE; INSERT INTO settings (name, value) VALUES ('a', '1')`);
  }, "UPDATE settings SET value = '2'; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(99999))"],
] as const) {
  test(`prepareSqliteFile() undoes the changes of a process killed while ${what}`, (t) => {
    const [path, left] = [join(makeFolder(t), "gatepost.db"), join(makeFolder(t), "gatepost.db")];
    make(path);
    const killed = new DatabaseSync(path);
    t.after(() => killed.close());
    // The cache is so small that pages are written to the file before the commit.
    killed.exec(`PRAGMA cache_size = 1; BEGIN EXCLUSIVE; ${change}`);
    for (const suffix of ["", "-journal"]) copyFileSync(path + suffix, left + suffix);
    const kind = change === SCHEMA ? "missing" : "usable";
    assert.equal(judgeDatabase(left, createSeal()).kind, kind);
    prepareSqliteFile(left);
    assert.deepEqual(schemaOf(left), schemaOf(newFile(t)));
    assert.equal(existsSync(`${left}-journal`), false);
    const values = new DatabaseSync(left).prepare("SELECT value FROM settings").all();
    assert.deepEqual(values.map(({ value }) => value), change === SCHEMA ? [] : ["1"]);
  });
}

test("prepareSqliteFile() without space for the migration leaves the old version whole", (t) => {
  const disk = mountSmallDisk(t, 2 ** 22);
  if (disk === undefined) return;
  const path = join(disk.folder, "gatepost.db");
  writeOldDatabase(path);
  const [before, content] = [schemaOf(path), contentOf(path)];
  const tooSmall = statSync(path).size;
  let failures = 0;
  for (let bytes = tooSmall; ; bytes += 65_536) {
    disk.resize(bytes);
    try {
      prepareSqliteFile(path);
      break;
    } catch (error) {
      assert.match(String(error), /^UnusableDatabaseError: [^\n]*(full|I\/O error)[^\n]*$/);
    }
    failures++;
    disk.resize(2 ** 22); // reading it needs some space
    assert.deepEqual(pragmas(path, ["user_version"]), [1]);
    assert.deepEqual([schemaOf(path), contentOf(path)], [before, content], `${bytes} bytes`);
  }
  assert.ok(failures > 2, `${failures} failures`);
  assert.deepEqual(pragmas(path, ["user_version"]), [NEWEST_VERSION]);
  assert.deepEqual(schemaOf(path), schemaOf(newFile(t)));
});

/** All rows of each table, except for a count of changes, which depends on the history. */
function contentOf(path: string): unknown[] {
  using connection = new DatabaseSync(path);
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name "
    + "NOT IN ('account_changes', 'sqlite_sequence') ORDER BY name").all();
  return tables.map(({ name }) => {
    const columns = connection.prepare(`SELECT name FROM pragma_table_xinfo('${name}') ORDER BY 1`)
      .all().map((column) => column["name"]);
    const [all, order] = [columns.join(), columns.map((_, at) => at + 1).join()];
    return [name, connection.prepare(`SELECT ${all} FROM ${name} ORDER BY ${order}`).all()];
  });
}

/** Each table, index and trigger with its columns and the words of its SQL, both sorted. */
function schemaOf(path: string): unknown[] {
  using connection = new DatabaseSync(path);
  const columns = connection.prepare(
    'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) ORDER BY name',
  );
  const rows = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
  return rows.map(({ name, sql }) => {
    const words = String(sql).replace(/--.*$/gm, "").match(/[\w']+|[<>=+]+/g) ?? [];
    return { name, words: words.sort(), columns: columns.all(String(name)) };
  });
}
