import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { createSqliteAside } from "../../src/database/sqlite_aside.ts";
import { createSqliteEngine } from "../../src/database/sqlite_engine.ts";
import { addUser, makeFolder, openSqliteFile } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";
import { noteThreads, refuseThreads } from "../helpers/threads.ts";
import { until } from "../helpers/until.ts";

const LONG = sql`${numbers(3_000_000)}
  SELECT count(*) AS count FROM n`;
const COUNT = sql`SELECT count(*) AS count FROM users`;

test("the first query starts a thread, which reads what is stored", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = openSqliteFile(t, path);
  await addUser(database); // this starts the writer's thread
  const threads = noteThreads(t);
  const aside = createSqliteAside(path);
  t.after(() => aside.close());
  assert.equal(threads.length, 0);
  assert.deepEqual(await aside.query(COUNT), [{ count: 1 }]);
  await addUser(database);
  assert.deepEqual(await aside.query(COUNT), [{ count: 2 }]);
  assert.equal(threads.length, 1);
});

test("a long query does not block the calling thread", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  openSqliteFile(t, path);
  const aside = createSqliteAside(path);
  t.after(() => aside.close());
  let isDone = false;
  const long = aside.query(LONG).finally(() => isDone = true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isDone, false);
  assert.deepEqual(await long, [{ count: 3_000_000 }]);
});

test("a wrong statement or a write is refused, and the next query succeeds", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  openSqliteFile(t, path);
  const aside = createSqliteAside(path);
  t.after(() => aside.close());
  await assert.rejects(aside.query(sql`SELECT nothing FROM nowhere`), UnavailableError);
  await assert.rejects(aside.query(sql`DELETE FROM users`), UnavailableError);
  assert.deepEqual(await aside.query(COUNT), [{ count: 0 }]);
});

test("if the thread ends its query fails, and the next one starts a new thread", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  await addUser(openSqliteFile(t, path));
  const threads = noteThreads(t);
  const aside = createSqliteAside(path);
  t.after(() => aside.close());
  await aside.query(COUNT);
  const asked = assert.rejects(aside.query(LONG), UnavailableError);
  await threads[0]?.terminate();
  await asked;
  assert.deepEqual(await aside.query(COUNT), [{ count: 1 }]);
  assert.equal(threads.length, 2);
});

test("a query fails with the reason if the thread cannot open the file", async (t) => {
  const aside = createSqliteAside(join(makeFolder(t), "nothing.db"));
  t.after(() => aside.close());
  const message = "The thread for long reads has ended: unable to open database file";
  await assert.rejects(aside.query(COUNT), { name: "UnavailableError", message });
});

test("a query or backup fails if no thread can be started; a later query starts one", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  openSqliteFile(t, path);
  const aside = createSqliteAside(path);
  t.after(() => aside.close());
  const refused = refuseThreads(t);
  for (const ask of [() => aside.query(COUNT), () => aside.backUp(`${path}.copy`)]) {
    await assert.rejects(ask, { name: "UnavailableError", message: /No thread .*EAGAIN/ });
  }
  refused.end();
  assert.deepEqual(await aside.query(COUNT), [{ count: 0 }]);
});

test("a backup is a file with mode 0600 and never replaces another", async (t) => {
  const folder = makeFolder(t);
  openSqliteFile(t, join(folder, "gatepost.db"));
  const aside = createSqliteAside(join(folder, "gatepost.db"));
  t.after(() => aside.close());
  const target = join(folder, "copy.db");
  const bytes = await aside.backUp(target);
  assert.deepEqual([statSync(target).size, statSync(target).mode & 0o777], [bytes, 0o600]);
  await assert.rejects(aside.backUp(target), /is there already/);
  assert.equal(existsSync(`${target}.partial`), false);
});

test("each backup runs in its own thread, which ends with it", async (t) => {
  const opened = await createSqliteEngine(join(makeFolder(t), "gatepost.db")).open();
  t.after(() => opened.close());
  await addUser(opened);
  const threads = noteThreads(t);
  assert.deepEqual(await opened.heavy.query(COUNT), [{ count: 1 }]);
  assert.equal(threads.length, 1);
  for (const name of ["one.db", "two.db"]) {
    await opened.backUpAs?.(name);
    assert.equal(threads.at(-1)?.threadId, -1, "the thread has not ended");
  }
  assert.deepEqual(await opened.heavy.query(COUNT), [{ count: 1 }]);
  assert.equal(threads.length, 3);
});

test("a backup that close() interrupts leaves no file", async (t) => {
  const folder = makeFolder(t);
  const database = openSqliteFile(t, join(folder, "gatepost.db"));
  await database.write([
    sql`INSERT INTO settings (name, value) VALUES ('large', hex(zeroblob(40000000)))`,
  ]);
  const aside = createSqliteAside(join(folder, "gatepost.db"));
  const copies = () => readdirSync(folder).filter((name) => name.startsWith("copy.db"));
  const cut = assert.rejects(aside.backUp(join(folder, "copy.db")), UnavailableError);
  await until(() => copies().length > 0);
  await aside.close();
  await cut;
  assert.deepEqual(copies(), []);
});
