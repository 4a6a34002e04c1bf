import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { makeFolder } from "../helpers/database.ts";
import { listen } from "../helpers/listen.ts";
import { put } from "../helpers/put.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";
import { addUser, COPYING, engineOf, stage } from "./rqlite_engine_stage.ts";

test("a backup to a full disk fails with ENOSPC and leaves no file", async (t) => {
  const disk = mountSmallDisk(t, 2 ** 16);
  if (disk === undefined) return;
  const engine = await stage(t);
  await addUser(engine, "u1");
  const backup = engine.backUp(join(disk.folder, "copy.db"), COPYING);
  await assert.rejects(backup, { code: "ENOSPC" });
  assert.deepEqual(readdirSync(disk.folder), []);
});

test("simultaneous backups during writes contain no deleted content", async (t) => {
  const folder = makeFolder(t);
  const engine = await stage(t);
  const database = await engine.open();
  t.after(() => database.close());
  await database.write([put("gone", "forget me")]);
  await database.write([sql`DELETE FROM settings WHERE name = 'gone'`]);
  const targets = ["a.db", "b.db", "c.db"].map((name) => join(folder, name));
  await Promise.all([
    ...targets.map((target) => engine.backUp(target, COPYING)),
    ...targets.map((target) => addUser(engine, `u${target}`)),
  ]);
  for (const target of targets) assert.ok(!readFileSync(target).includes("forget me"));
});

test("a backup never replaces a file, and leaves no file when it fails", async (t) => {
  const folder = makeFolder(t);
  const engine = await stage(t);
  await addUser(engine, "u1");
  const target = join(folder, "there.db");
  writeFileSync(target, "mine");
  await assert.rejects(engine.backUp(target, COPYING), { code: "EEXIST" });
  const ended = AbortSignal.abort(new Error("interrupted"));
  await assert.rejects(engine.backUp(join(folder, "new.db"), ended));
  const gone = await engineOf("rqlite://127.0.0.1:1");
  await assert.rejects(gone.backUp(join(folder, "new.db"), COPYING), { name: "UnavailableError" });
  assert.deepEqual(readdirSync(folder), ["there.db"]);
  writeFileSync(join(folder, "new.db.download"), "of one that was killed");
  const message = /new\.db\.download is there already: .*remove it\.$/;
  await assert.rejects(engine.backUp(join(folder, "new.db"), COPYING), { message });
});

test("a backup that is interrupted before the leader responds ends at once", async (t) => {
  const folder = makeFolder(t);
  const controller = new AbortController();
  const reason = new Error("Interrupted.");
  const server = createServer(({ url = "" }, response) => {
    if (url.startsWith("/db/backup")) controller.abort(reason);
    else response.end('{"results":[{}]}');
  });
  const engine = await engineOf(`rqlite://${await listen(t, server)}`);
  const { signal } = controller;
  await assert.rejects(engine.backUp(join(folder, "new.db"), signal), reason);
  assert.deepEqual(readdirSync(folder), []);
});

for (const [sent, what] of [["SQLite format 3", "within"], ["", "before"]] as const) {
  test(`a backup fails if the leader stalls ${what} it`, { timeout: 10_000 }, async (t) => {
    const folder = makeFolder(t);
    let isSilent = false;
    const server = createServer(({ url = "" }, response) => {
      if (isSilent) return;
      isSilent = url.startsWith("/db/backup");
      if (!isSilent) response.end('{"results":[{}]}');
      else if (sent) response.write(sent);
    });
    const { backUp } = await engineOf(`rqlite://${await listen(t, server)}`);
    const backup = backUp(join(folder, "new.db"), COPYING);
    const message = "The leader has not sent all of its copy";
    await assert.rejects(backup, { name: "UnavailableError", message });
    assert.deepEqual(readdirSync(folder), []);
  });
}
