import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, type TestContext, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { UnusableDatabaseError } from "../../src/database/database.ts";
import { judgeDatabase } from "../../src/database/judge.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { APPLICATION_ID, NEWEST_VERSION } from "../../src/database/migrations.ts";
import { FILL_LAST } from "../../src/database/old_versions.ts";
import { SCHEMA } from "../../src/database/schema.ts";
import { LOCK_TIMEOUT_MS, openForLook, openSqlite } from "../../src/database/sqlite_file.ts";
import { makeFolder } from "../helpers/database.ts";
import { runNode } from "../helpers/process.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";
import { openEmptyOldDatabase, writeOldDatabase } from "../helpers/old_database.ts";
import { OLD_MIGRATIONS } from "../helpers/old_migrations.ts";

test("prepareSqliteFile() creates a file with mode 0600 and its folders with mode 0700", (t) => {
  const folder = makeFolder(t);
  const umask = process.umask(0);
  t.after(() => process.umask(umask));
  const path = join(folder, "one", "two", "gatepost.db");
  prepareSqliteFile(path);
  assert.equal(modeOf(path), 0o600);
  assert.equal(modeOf(join(folder, "one", "two")), 0o700);
  assert.equal(modeOf(join(folder, "one")), 0o700);
});

test("prepareSqliteFile() creates the file with mode 0600 under a strict umask, too", (t) => {
  const folder = makeFolder(t);
  const umask = process.umask(0o277);
  try {
    prepareSqliteFile(join(folder, "gatepost.db"));
  } finally {
    process.umask(umask);
  }
  assert.equal(modeOf(join(folder, "gatepost.db")), 0o600);
});

test("the log and its index have mode 0600 like the file", (t) => {
  const path = newFile(t);
  const umask = process.umask(0);
  t.after(() => process.umask(umask));
  const connection = openSqlite(path, { readOnly: false });
  connection.exec("INSERT INTO settings (name, value) VALUES ('a', '1')");
  assert.equal(modeOf(`${path}-wal`), 0o600);
  assert.equal(modeOf(`${path}-shm`), 0o600);
  connection.close();
});

test("prepareSqliteFile() does not change the mode of an existing folder and file", (t) => {
  const folder = join(makeFolder(t), "data");
  mkdirSync(folder);
  chmodSync(folder, 0o750);
  const path = join(folder, "gatepost.db");
  writeFileSync(path, "");
  chmodSync(path, 0o640);
  prepareSqliteFile(path);
  assert.equal(modeOf(folder), 0o750);
  assert.equal(modeOf(path), 0o640);
});

test("a new file has our application id, the newest version and a write-ahead log", (t) => {
  const path = newFile(t);
  assert.deepEqual(pragmas(path, ["application_id", "user_version", "journal_mode"]), [
    APPLICATION_ID,
    NEWEST_VERSION,
    "wal",
  ]);
});

test("every table is STRICT", (t) => {
  const connection = openSqlite(newFile(t), { readOnly: true });
  t.after(() => connection.close());
  const tables = connection.prepare(
    "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'",
  ).all();
  assert.ok(tables.length > 10);
  assert.deepEqual(tables.filter((table) => table["strict"] !== 1), []);
});

for (const readOnly of [false, true]) {
  const what = readOnly ? "that reads" : "that writes";

  test(`a connection ${what} has synchronous=FULL, secure_delete and foreign keys`, (t) => {
    const connection = openSqlite(newFile(t), { readOnly });
    t.after(() => connection.close());
    assert.equal(connection.prepare("PRAGMA synchronous").get()?.["synchronous"], 2);
    assert.equal(connection.prepare("PRAGMA secure_delete").get()?.["secure_delete"], 1);
    // MEMORY: no temporary files outside the data folder.
    assert.equal(connection.prepare("PRAGMA temp_store").get()?.["temp_store"], 2);
    assert.equal(connection.prepare("PRAGMA foreign_keys").get()?.["foreign_keys"], 1);
    // The readers run in the request thread, which must not wait for a lock.
    const timeoutMs = connection.prepare("PRAGMA busy_timeout").get()?.["timeout"];
    assert.equal(timeoutMs, readOnly ? 0 : LOCK_TIMEOUT_MS);
  });

  test(`a connection ${what} refuses ATTACH in every form`, (t) => {
    const connection = openSqlite(newFile(t), { readOnly });
    t.after(() => connection.close());
    const other = join(makeFolder(t), "other.db");
    for (const text of [
      `ATTACH '${other}' AS other`,
      `attach database '${other}' as other`,
      `/* */ ATTACH '${other}' AS other`,
      "ATTACH ':memory:' AS other",
      "ATTACH '' AS other",
      `VACUUM INTO '${other}'`,
    ]) {
      assert.throws(() => connection.exec(text), text);
    }
    assert.equal(existsSync(other), false);
  });

  test(`a connection ${what} loads no extension`, (t) => {
    const connection = openSqlite(newFile(t), { readOnly });
    t.after(() => connection.close());
    assert.throws(() => connection.prepare("SELECT load_extension('x')").get());
  });
}

test("a connection that reads cannot write", (t) => {
  const connection = openSqlite(newFile(t), { readOnly: true });
  t.after(() => connection.close());
  assert.throws(() => connection.exec("INSERT INTO settings (name, value) VALUES ('a', '1')"));
  assert.throws(() => connection.exec("CREATE TABLE t (x)"));
});

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

test("prepareSqliteFile() fills an empty file and an empty database", (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, "empty"), "");
  run(join(folder, "vacant"), "PRAGMA user_version = 1; CREATE TABLE t (x); DROP TABLE t");
  for (const name of ["empty", "vacant"]) {
    prepareSqliteFile(join(folder, name));
    assert.equal(countSettings(join(folder, name)), 0);
  }
});

test("judgeDatabase() refuses an emptied file and does not change its log", (t) => {
  const path = newFile(t);
  truncateSync(path);
  writeFileSync(`${path}-wal`, "a log");
  const state = judgeDatabase(path, createSeal());
  assert.match(state.kind === "unusable" ? state.reason : "", /gone or empty, and its log/);
  assert.equal(readFileSync(`${path}-wal`, "utf8"), "a log");
});

describe("prepareSqliteFile() refuses, and leaves unchanged,", () => {
  const table: [what: string, make: (path: string) => void, reason: RegExp][] = [
    ["a newer version of this program's database", (path) => {
      prepareSqliteFile(path);
      run(path, `PRAGMA user_version = ${NEWEST_VERSION + 1}`);
    }, /newer/i],
    ["a much newer version with other tables", (path) => {
      run(path, `CREATE TABLE t (x); PRAGMA application_id = ${APPLICATION_ID};
        PRAGMA user_version = 1000`);
    }, /newer/i],
    ["another program's database", (path) => {
      run(path, "CREATE TABLE notes (x)");
    }, /another program/],
    ["another program's database with our version number", (path) => {
      run(path, `CREATE TABLE notes (x); PRAGMA user_version = ${NEWEST_VERSION}`);
    }, /another program/],
    ["another program's database with its own application id", (path) => {
      run(path, "CREATE TABLE notes (x); PRAGMA application_id = 1234; PRAGMA user_version = 9");
    }, /another program/],
    ["another program's database with a write-ahead log", (path) => {
      run(path, "PRAGMA journal_mode = WAL; CREATE TABLE notes (x)");
    }, /another program/],
    ["one byte", (path) => writeFileSync(path, "x"), /not an SQLite database/],
    ["a short text", (path) => writeFileSync(path, "hello\n"), /not an SQLite database/],
    ["a few zeros", (path) => writeFileSync(path, Buffer.alloc(10)), /not an SQLite database/],
    ["a page of zeros", (path) => {
      writeFileSync(path, Buffer.alloc(4096));
    }, /not an SQLite database/],
    ["a long text", (path) => {
      writeFileSync(path, "hello\n".repeat(10_000));
    }, /not an SQLite database/],
    ["the beginning of SQLite's header", (path) => writeFileSync(path, "SQLite format"), /./],
    ["SQLite's header alone", (path) => writeFileSync(path, "SQLite format 3\0"), /./],
    ["SQLite's header with noise after it", (path) => {
      const noise = Buffer.alloc(20_000, "noise");
      writeFileSync(path, Buffer.concat([Buffer.from("SQLite format 3\0"), noise]));
    }, /./],
    ["our own database cut in its first page", (path) => {
      prepareSqliteFile(path);
      writeFileSync(path, readFileSync(path).subarray(0, 2_000));
    }, /./],
  ];
  for (const [what, make, reason] of table) {
    test(what, (t) => {
      const path = join(makeFolder(t), "gatepost.db");
      make(path);
      const before = readFileSync(path);
      assert.throws(() => prepareSqliteFile(path), (error: unknown) => {
        assert.ok(error instanceof UnusableDatabaseError, String(error));
        assert.match(error.message, reason);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      });
      assert.deepEqual(readFileSync(path), before);
    });
  }
});

test("prepareSqliteFile() throws UnusableDatabaseError if the path cannot be a file", (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, "file"), "");
  for (const path of [folder, join(folder, "file", "gatepost.db")]) {
    assert.throws(() => prepareSqliteFile(path), UnusableDatabaseError);
  }
});

test("prepareSqliteFile() waits while another process makes the database", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeFileSync(path, "");
  const program = `const { DatabaseSync } = await import("node:sqlite");
    const maker = new DatabaseSync(${JSON.stringify(path)});
    maker.exec("BEGIN EXCLUSIVE; CREATE TABLE t (x)");
    console.log("making");
    setTimeout(() => maker.exec("ROLLBACK"), 1_500);`;
  const maker = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(maker, "exit");
  await once(maker.stdout, "data");
  prepareSqliteFile(path);
  assert.equal(countSettings(path), 0);
  await ended;
});

test("several processes may make a database at once", async (t) => {
  const path = join(makeFolder(t), "data", "gatepost.db");
  const module = import.meta.resolve("../../src/database/migrate.ts");
  const file = import.meta.resolve("../../src/database/sqlite_file.ts");
  const startMs = Date.now() + 1_000;
  const program = `
    const { prepareSqliteFile } = await import(${JSON.stringify(module)});
    const { openSqlite } = await import(${JSON.stringify(file)});
    while (Date.now() < ${startMs});
    prepareSqliteFile(${JSON.stringify(path)});
    const connection = openSqlite(${JSON.stringify(path)}, { readOnly: false });
    connection.exec("INSERT INTO settings (name, value) VALUES (" + process.pid + ", '')");
    connection.close();
  `;
  const results = await Promise.all(
    Array.from({ length: 4 }, () => runNode(["--input-type=module", "-e", program])),
  );
  assert.deepEqual(results.map(({ code, stderr }) => [code, stderr]), results.map(() => [0, ""]));
  assert.equal(countSettings(path), 4);
  assert.deepEqual(pragmas(path, ["user_version", "journal_mode"]), [NEWEST_VERSION, "wal"]);
});

function newFile(t: TestContext): string {
  const path = join(makeFolder(t), "gatepost.db");
  prepareSqliteFile(path);
  return path;
}

/** Runs SQL on a file through a connection with SQLite's defaults. */
function run(path: string, text: string): void {
  const connection = new DatabaseSync(path);
  connection.exec(text);
  connection.close();
}

function pragmas(path: string, names: readonly string[]): unknown[] {
  const connection = new DatabaseSync(path);
  const values = names.map((name) => connection.prepare(`PRAGMA ${name}`).get()?.[name]);
  connection.close();
  return values;
}

function countSettings(path: string): number {
  const connection = new DatabaseSync(path);
  const rows = connection.prepare("SELECT 1 FROM settings").all();
  connection.close();
  return rows.length;
}

/** All rows of each table, except for a count of changes, which depends on the history. */
function contentOf(path: string): unknown[] {
  const connection = new DatabaseSync(path);
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name "
    + "NOT IN ('account_changes', 'sqlite_sequence') ORDER BY name").all();
  const content = tables.map(({ name }) => {
    const columns = connection.prepare(`SELECT name FROM pragma_table_xinfo('${name}') ORDER BY 1`)
      .all().map((column) => column["name"]);
    const [all, order] = [columns.join(), columns.map((_, at) => at + 1).join()];
    return [name, connection.prepare(`SELECT ${all} FROM ${name} ORDER BY ${order}`).all()];
  });
  connection.close();
  return content;
}

/** Each table, index and trigger with its columns and the words of its SQL, both sorted. */
function schemaOf(path: string): unknown[] {
  const connection = new DatabaseSync(path);
  const columns = connection.prepare(
    'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) ORDER BY name',
  );
  const rows = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
  const schema = rows.map(({ name, sql }) => {
    const words = String(sql).replace(/--.*$/gm, "").match(/[\w']+|[<>=+]+/g) ?? [];
    return { name, words: words.sort(), columns: columns.all(String(name)) };
  });
  connection.close();
  return schema;
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

test("openForLook() makes no file beside a database that nobody has open", (t) => {
  const path = newFile(t);
  const before = readdirSync(dirname(path));
  using looking = openForLook(path);
  assert.deepEqual(looking.prepare("SELECT 1 FROM settings").all(), []);
  assert.deepEqual(readdirSync(dirname(path)), before);
});

test("openForLook() sees what is only in the log of a database in use", (t) => {
  const path = newFile(t);
  using writing = openSqlite(path, { readOnly: false });
  writing.exec("INSERT INTO settings (name, value) VALUES ('a', '1')");
  using looking = openForLook(path);
  assert.equal(looking.prepare("SELECT 1 FROM settings").all().length, 1);
});

test("openForLook() changes neither the file nor the log of a process that was killed", (t) => {
  const [path, left] = [newFile(t), join(makeFolder(t), "gatepost.db")];
  using writing = openSqlite(path, { readOnly: false });
  writing.exec("INSERT INTO settings (name, value) VALUES ('a', '1')");
  for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, left + suffix);
  const read = () => ["", "-wal"].map((suffix) => readFileSync(left + suffix));
  const before = read();
  const looking = openForLook(left);
  assert.equal(looking.prepare("SELECT 1 FROM settings").all().length, 1);
  looking.close();
  assert.deepEqual(read(), before);
});

test("openForLook() leaves no file open after close()", (t) => {
  const path = newFile(t);
  const nextFile = () => {
    const file = openSync(path, "r");
    closeSync(file);
    return file;
  };
  const before = nextFile();
  openForLook(path).close();
  assert.equal(nextFile(), before);
});
