import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { acquirePresence, isAnybodyPresent } from "../../src/database/presence.ts";
import { replaceFs } from "../helpers/replace_fs.ts";

const MODULE = new URL("../../src/database/presence.ts", import.meta.url).href;

function newDatabasePath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-presence-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "gatepost.db");
}

type Presence = ReturnType<typeof acquirePresence>;

function open(t: TestContext, path: string, name: string): Presence {
  const presence = acquirePresence(path, name);
  t.after(() => presence.close());
  return presence;
}

/** Another process that is present until it is killed. */
async function startOther(t: TestContext, path: string, name: string) {
  const code = `import { acquirePresence } from ${JSON.stringify(MODULE)};
    globalThis.presence = acquirePresence(${JSON.stringify(path)}, ${JSON.stringify(name)});
    process.stdout.write("there");
    setTimeout(() => {}, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  t.after(kill);
  await once(child.stdout, "data");
  return { kill };
}

function files(path: string): string[] {
  return readdirSync(join(path, ".."));
}

/** The names of the ended processes that `forEnded` finds. */
async function ended(presence: Presence): Promise<string[]> {
  const names: string[] = [];
  await presence.forEnded(async (name) => void names.push(name));
  return names.sort();
}

describe("forEnded()", () => {
  test("finds nobody if there is only the process itself", async (t) => {
    const path = newDatabasePath(t);
    assert.deepEqual(await ended(open(t, path, "c1")), []);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("ignores a process while it lives, and finds it once after it is killed", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    const other = await startOther(t, path, "c2");
    for (let look = 0; look < 3; look++) assert.deepEqual(await ended(own), []);
    await other.kill();
    assert.deepEqual(await ended(own), ["c2"]);
    assert.deepEqual(await ended(own), []);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("ignores a file that no process made, and still finds ended processes", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    writeFileSync(`${path}-process-a`, "what no process has written".repeat(100));
    const other = await startOther(t, path, "c2");
    await other.kill();
    assert.deepEqual(await ended(own), ["c2"]);
  });

  test("ignores a living process whose file is gone; that one creates it again", async (t) => {
    const path = newDatabasePath(t);
    const [own, other] = [open(t, path, "c1"), open(t, path, "c2")];
    for (const file of files(path)) rmSync(join(path, "..", file));
    assert.deepEqual(await ended(own), []);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
    assert.deepEqual(await ended(other), []);
    assert.deepEqual(files(path), ["gatepost.db-process-c1", "gatepost.db-process-c2"]);
    assert.deepEqual(await ended(own), []);
    assert.deepEqual(await ended(other), []);
  });

  test("rejects if the own file cannot be created again, and close() still works", async (t) => {
    const path = newDatabasePath(t);
    const folder = join(path, "..", "lost");
    mkdirSync(folder);
    const presence = acquirePresence(join(folder, "gatepost.db"), "c1");
    rmSync(folder, { recursive: true });
    for (let look = 0; look < 2; look++) await assert.rejects(ended(presence), { code: "ENOENT" });
    presence.close();
  });

  test("finds an ended process again if its release failed", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    writeFileSync(`${path}-process-c2`, "");
    await assert.rejects(own.forEnded(() => Promise.reject(new Error("locked"))), /locked/);
    assert.deepEqual(await ended(own), ["c2"]);
  });

  test("finds an ended process in only one of two processes", async (t) => {
    const path = newDatabasePath(t);
    const [one, other] = [open(t, path, "c1"), open(t, path, "c2")];
    writeFileSync(`${path}-process-c3`, "");
    const releasing = Promise.withResolvers<void>();
    const giving = one.forEnded(() => releasing.promise);
    assert.deepEqual(await ended(other), []);
    releasing.resolve();
    await giving;
    assert.deepEqual(await ended(other), []);
  });

  test("ignores a process that has closed", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    acquirePresence(path, "c2").close();
    assert.deepEqual(await ended(own), []);
  });

  test("ignores a process that closes meanwhile, and does not create its file again", async (t) => {
    const path = newDatabasePath(t);
    const [own, other] = [open(t, path, "c1"), acquirePresence(path, "c2")];
    const restore = replaceFs(t, "readdirSync", ((folder: string) => {
      restore();
      const found = readdirSync(folder);
      other.close();
      return found;
    }) as typeof fs.readdirSync);
    assert.deepEqual(await ended(own), []);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("finds a process that has closed and could not remove its file", async (t) => {
    const path = newDatabasePath(t);
    const [own, other] = [open(t, path, "c1"), acquirePresence(path, "c2")];
    const restore = replaceFs(t, "rmSync", () => {
      throw Object.assign(new Error("read-only file system"), { code: "EROFS" });
    });
    other.close();
    restore();
    assert.deepEqual(await ended(own), ["c2"]);
  });

  test("ignores the processes of another database in the same folder", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    writeFileSync(`${path}2-process-c2`, "");
    assert.deepEqual(await ended(own), []);
  });
});

describe("acquirePresence()", () => {
  test("creates an empty file that only its owner may read", (t) => {
    const path = newDatabasePath(t);
    open(t, path, "c1");
    const { mode, size } = statSync(`${path}-process-c1`);
    assert.deepEqual([mode & 0o777, size], [0o600, 0]);
  });

  test("leaves the file of an ended process until forEnded() has found it", async (t) => {
    const path = newDatabasePath(t);
    writeFileSync(path, "");
    writeFileSync(`${path}-process-c1`, "");
    await startOther(t, path, "c2");
    const own = open(t, path, "c3");
    assert.deepEqual(await ended(own), ["c1"]);
    assert.deepEqual(files(path).sort(), [
      "gatepost.db", "gatepost.db-process-c2", "gatepost.db-process-c3",
    ]);
  });

  test("leaves no file after close()", (t) => {
    const path = newDatabasePath(t);
    acquirePresence(path, "c1").close();
    assert.equal(existsSync(`${path}-process-c1`), false);
  });

  test("returns a presence that closes even if its file cannot be removed", (t) => {
    const path = newDatabasePath(t);
    const own = acquirePresence(path, "c1");
    rmSync(`${path}-process-c1`);
    mkdirSync(`${path}-process-c1`);
    own.close();
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("creates its file again if another process removed it before the lock", async (t) => {
    const path = newDatabasePath(t);
    const restore = replaceFs(t, "existsSync", (file) => {
      restore();
      rmSync(file);
      return existsSync(file);
    });
    open(t, path, "c1");
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
    assert.deepEqual(await ended(open(t, path, "c2")), [], "it is locked");
  });

  test("leaves no file without a lock, which would mean that the process has ended", (t) => {
    const path = newDatabasePath(t);
    writeFileSync(`${path}-process-c1`, "what cannot be locked".repeat(100));
    assert.throws(() => acquirePresence(path, "c1"), UnavailableError);
    assert.deepEqual(files(path), []);
  });

  test("keeps the files of all processes that start at once", async (t) => {
    const path = newDatabasePath(t);
    const names = ["c1", "c2", "c3", "c4"];
    await Promise.all(names.map((name) => startOther(t, path, name)));
    const own = open(t, path, "c5");
    assert.deepEqual(await ended(own), []);
    assert.equal(files(path).length, 5);
  });
});

test("isAnybodyPresent() is true as long as a process lives, at each call", async (t) => {
  const path = newDatabasePath(t);
  assert.equal(isAnybodyPresent(path), false);
  const other = await startOther(t, path, "p1");
  for (let look = 0; look < 2; look++) assert.equal(isAnybodyPresent(path), true);
  await other.kill();
  for (let look = 0; look < 2; look++) assert.equal(isAnybodyPresent(path), false);
});
