import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext, test } from "node:test";
import { acquireRqlitePresence } from "../../src/database/rqlite_presence.ts";
import { makeFolder } from "../helpers/database.ts";
import {
  addUser,
  cluster,
  COPYING,
  engineOf,
  listUsers,
  passOn,
  reasonOf,
  SEAL,
  stage,
  stageCopy,
} from "./rqlite_engine_stage.ts";

/** The folder of SQLite's temporary files, in this process from now on. */
const TEMPORARY = process.env["SQLITE_TMPDIR"] = makeFolder({ after });

/** A copy of a database file with user u1. */
async function copyFile(t: TestContext) {
  const folder = makeFolder(t);
  const copy = join(folder, "copy.db");
  const file = await engineOf(join(folder, "gatepost.db"));
  await addUser(file, "u1");
  await file.backUp(copy, COPYING);
  return { folder, copy };
}

test("a file can be moved into a cluster and back; replaced content is kept", async (t) => {
  const folder = makeFolder(t);
  const [old, out, back] = ["old.db", "out.db", "back.db"].map((name) => join(folder, name));
  assert.ok(old && out && back);
  const file = await engineOf(join(folder, "gatepost.db"));
  await addUser(file, "u1");
  await file.backUp(out, COPYING);
  const engine = await stage(t);
  await addUser(engine, "u2");

  const { bytes, keptAs } = await engine.restore(out, SEAL, Date.UTC(2026, 0, 1), COPYING);

  assert.deepEqual([bytes, keptAs], [statSync(out).size, `${out}.before-20260101T000000Z`]);
  assert.deepEqual(await listUsers(engine), ["u1"]);
  await addUser(engine, "u3");
  assert.deepEqual(await listUsers(await engineOf(keptAs ?? "")), ["u2"]);
  assert.equal(await engine.backUp(back, COPYING), statSync(back).size);
  assert.equal(statSync(back).mode & 0o777, 0o600);
  await file.restore(back, SEAL, 0, COPYING);
  assert.deepEqual(await listUsers(file), ["u1", "u3"]);
  const kept = `out.db.before-20260101T000000Z`;
  const moved = "gatepost.db.before-19700101T000000Z";
  assert.deepEqual(readdirSync(folder).sort(), ["back.db", "gatepost.db", moved, "out.db", kept]);
});

for (const [how, reason] of [["is lost", "socket hang up"], ["is not awaited", "Stop"]]) {
  test(`if the response to a restore ${how}, the error names the kept file`, async (t) => {
    const { copy, direct } = await stageCopy(t);
    const controller = new AbortController();
    const engine = await engineOf(await passOn(t, async (path, { socket }, pass) => {
      if (path !== "/db/load") return false;
      await pass();
      if (reason === "Stop") controller.abort(new Error(reason));
      else socket?.destroy();
      return true;
    }));
    const { signal } = controller;
    await assert.rejects(engine.restore(copy, SEAL, 0, signal), (error: Error) => {
      const kept = `${copy}.before-19700101T000000Z`;
      const end = ` was replaced (${reason}); what was there is in ${kept}.`;
      assert.match(error.message, /^It is not known whether rqlite:\/\/[\d.:]+ was replaced/);
      assert.equal(error.name, "UnusableDatabaseError");
      return error.message.endsWith(end) && existsSync(kept);
    });
    assert.deepEqual(await listUsers(direct), ["u1"]);
  });
}

test("a restore sends no deleted content and makes no temporary file", async (t) => {
  const folder = makeFolder(t);
  const [path, copy] = [join(folder, "gatepost.db"), join(folder, "copy.db")];
  const file = await engineOf(path);
  await addUser(file, "u1");
  const connection = new DatabaseSync(path);
  connection.exec(`INSERT INTO settings (name, value)
    VALUES ('x', hex(zeroblob(1000000))), ('kept', hex(zeroblob(5000000)))`);
  connection.exec("DELETE FROM settings WHERE name = 'x'");
  connection.close();
  await file.backUp(copy, COPYING);
  const engine = await stage(t);
  const beside: unknown[] = [];
  const watching = watch(TEMPORARY, (_, name) => beside.push(name));
  t.after(() => watching.close());
  const { bytes } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(beside, []);
  assert.ok(bytes < statSync(copy).size - 2_000_000, `${bytes} of ${statSync(copy).size}`);
  assert.deepEqual(await listUsers(engine), ["u1"]);
});

test("a restore that is stopped before it is sent fails with the reason alone", async (t) => {
  const { copy } = await copyFile(t);
  await stage(t);
  const controller = new AbortController();
  const paths: string[] = [];
  const engine = await engineOf(await passOn(t, (path) => {
    paths.push(path);
    controller.abort(new Error("Stop"));
    return false;
  }));
  await assert.rejects(engine.restore(copy, SEAL, 0, controller.signal), { message: "Stop" });
  assert.ok(paths.length > 0 && !paths.includes("/db/load"), `${paths}`);
});

test("a restore waits for a leader that is silent while it stores the copy", async (t) => {
  const { copy, direct } = await stageCopy(t);
  const elapsedMs = performance.now.bind(performance);
  let silent = 0;
  let isLoaded = false;
  const engine = await engineOf(await passOn(t, async (path, response, pass) => {
    if (path === "/db/load") {
      await pass();
      isLoaded = true;
      response.end("");
      return true;
    }
    if (!isLoaded || silent === 3) return false;
    if (path.startsWith("/db/query")) silent++;
    t.mock.method(performance, "now", () => elapsedMs() + silent * 6_000); // the request times out
    return true;
  }));
  await engine.restore(copy, SEAL, 0, COPYING);
  assert.equal(silent, 3);
  assert.deepEqual(await listUsers(direct), ["u1"]);
});

test("a restore is sent again if the node stops leading while it reads it", async (t) => {
  const { copy, direct } = await stageCopy(t);
  // The texts of rqlite 8.26.
  const refusals = ["remote node failed to load: not leader\n", "store not ready\n"];
  const engine = await engineOf(await passOn(t, (path, response) => {
    const refusal = path === "/db/load" ? refusals.shift() : undefined;
    if (refusal !== undefined) response.writeHead(500).end(refusal);
    return response.writableEnded;
  }));
  await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(refusals, []);
  assert.deepEqual(await listUsers(direct), ["u1"]);
});

test("a restore fails if the leader returns an error or then has other content", async (t) => {
  const { copy, direct } = await stageCopy(t);
  for (const [spoil, reason] of [
    [undefined, '{"error":"not the leader"}'],
    ["PRAGMA user_version = 99", "schema version is 99"],
  ] as const) {
    const engine = await engineOf(await passOn(t, async (path, response, pass) => {
      if (path !== "/db/load") return false;
      if (spoil) {
        await pass();
        await cluster.nodes[0]?.call("/db/execute", [spoil]);
      }
      response.end(spoil ? "" : reason);
      return true;
    }));
    await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), ({ name, message }: Error) =>
      name === "UnusableDatabaseError" && message.includes(reason) &&
        message.startsWith("It is not known whether rqlite:"));
    if (spoil === undefined) assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
  }
});

test("a restore to an empty cluster that the leader refuses names no kept file", async (t) => {
  const { copy } = await copyFile(t);
  await stage(t);
  const engine = await engineOf(await passOn(t, (path, response) =>
    path === "/db/load" && response.writeHead(503).end("busy") !== undefined));
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnusableDatabaseError",
    message: /^It is not known [^\n]+ replaced \([\d.:]+ refuses to copy: HTTP 503 busy\)\.$/,
  });
});

test("a restore that finds no leader fails and changes nothing", async (t) => {
  const { copy, direct } = await stageCopy(t);
  const elapsedMs = performance.now.bind(performance);
  let isLost = false;
  const engine = await engineOf(await passOn(t, (path, response) => {
    if (isLost && path.startsWith("/db/query")) {
      response.writeHead(503).end("leader not found");
      t.mock.method(performance, "now", () => elapsedMs() + 6_000); // the request times out
    }
    isLost ||= path.startsWith("/db/backup");
    return response.writableEnded;
  }));
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnavailableError",
    message: /leader not found/,
  });
  assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
});

test("a restore to an empty cluster makes no file of the old content", async (t) => {
  const { folder, copy } = await copyFile(t);
  const engine = await stage(t);
  const { keptAs } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual([keptAs, await listUsers(engine)], [undefined, ["u1"]]);
  assert.deepEqual(readdirSync(folder).sort(), ["copy.db", "gatepost.db"]);
});

for (const sent of ["", "not the leader"]) {
  test(`backup and restore fail if the leader sends "${sent}" as its copy`, async (t) => {
    const { folder, copy, direct } = await stageCopy(t);
    const engine = await engineOf(await passOn(t, (path, response) =>
      path.startsWith("/db/backup") && response.end(sent) !== undefined));
    const refusal = { name: "UnavailableError", message: /not sent all of its copy/ };
    await assert.rejects(engine.backUp(join(folder, "other.db"), COPYING), refusal);
    await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), refusal);
    assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
    assert.deepEqual(readdirSync(folder), ["copy.db"]);
  });
}

test("a restore of a file with a log beside it is refused: it is no backup", async (t) => {
  const { copy, direct: engine } = await stageCopy(t);
  writeFileSync(`${copy}-wal`, "what the file lacks");
  const message = /copy\.db has a log beside it/;
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), { message });
});

test("a restore with refused credentials fails and names the cluster", async (t) => {
  const { copy } = await stageCopy(t);
  const address = await passOn(t, (_, response) => response.writeHead(401).end() !== undefined);
  const message = new RegExp(`^Database ${address}: [\\d.:]+ refuses GATEPOST_DATABASE_CRED`);
  const engine = await engineOf(address);
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnusableDatabaseError",
    message,
  });
});

test("a restore may replace the database of a newer program", async (t) => {
  const { copy, direct: engine } = await stageCopy(t);
  await cluster.nodes[0]?.call("/db/execute", ["PRAGMA user_version = 99"]);
  const { keptAs } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(await listUsers(engine), ["u1"]);
  assert.match(await reasonOf(await engineOf(keptAs ?? "")), /schema version is 99/);
});

test("a restore from a damaged file, or while a process is present, is refused", async (t) => {
  const { folder, copy, direct: engine } = await stageCopy(t);
  const database = await engine.open();
  const presence = await acquireRqlitePresence(database, "c1");
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), { message: /process works on/ });
  await presence.close();
  await database.close();
  const broken = join(folder, "broken.db");
  writeFileSync(broken, readFileSync(copy).fill(7, 8192));
  await assert.rejects(engine.restore(broken, SEAL, 0, COPYING), { name: "UnusableDatabaseError" });
  assert.deepEqual(await listUsers(engine), ["u1", "u2"]);
  assert.ok(!existsSync(`${copy}.before-19700101T000000Z`));
  assert.deepEqual(readdirSync(folder).sort(), ["broken.db", "copy.db"]);
});
