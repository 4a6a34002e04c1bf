import assert from "node:assert/strict";
import { closeSync, copyFileSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { LOCK_TIMEOUT_MS, openForLook, openSqlite } from "../../src/database/sqlite_file.ts";
import { makeFolder } from "../helpers/database.ts";
import { modeOf, newFile } from "./sqlite_stage.ts";

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

for (const readOnly of [false, true]) {
  const what = readOnly ? "that reads" : "that writes";

  test(`a connection ${what} has synchronous=FULL, secure_delete and foreign keys`, (t) => {
    using connection = openSqlite(newFile(t), { readOnly });
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
    using connection = openSqlite(newFile(t), { readOnly });
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
    using connection = openSqlite(newFile(t), { readOnly });
    assert.throws(() => connection.prepare("SELECT load_extension('x')").get());
  });
}

test("a connection that reads cannot write", (t) => {
  using connection = openSqlite(newFile(t), { readOnly: true });
  assert.throws(() => connection.exec("INSERT INTO settings (name, value) VALUES ('a', '1')"));
  assert.throws(() => connection.exec("CREATE TABLE t (x)"));
});

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
