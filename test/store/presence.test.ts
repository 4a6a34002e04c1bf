import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { openPresence, type Presence } from "../../src/store/presence.ts";

const MODULE = new URL("../../src/store/presence.ts", import.meta.url).href;

function newDatabasePath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-presence-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "gatepost.db");
}

function open(t: TestContext, path: string, name: string): Presence {
  const presence = openPresence(path, name);
  t.after(() => presence.close());
  return presence;
}

/** Another process that is present until it is killed. */
async function startOther(t: TestContext, path: string, name: string) {
  const code = `import { openPresence } from ${JSON.stringify(MODULE)};
    globalThis.presence = openPresence(${JSON.stringify(path)}, ${JSON.stringify(name)});
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

describe("isAlive()", () => {
  test("is true of the process itself", (t) => {
    assert.equal(open(t, newDatabasePath(t), "c1").isAlive("c1"), true);
  });

  test("is false of a process that there never was, and makes none", (t) => {
    const path = newDatabasePath(t);
    const before = open(t, path, "c1");
    assert.equal(before.isAlive("c2"), false);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("is true of another process while it lives, false once it is killed", async (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    const other = await startOther(t, path, "c2");
    for (let look = 0; look < 3; look++) assert.equal(own.isAlive("c2"), true);
    await other.kill();
    assert.equal(own.isAlive("c2"), false);
    assert.equal(own.isAlive("c2"), false);
    assert.deepEqual(files(path), ["gatepost.db-process-c1"]);
  });

  test("is false of one that has closed", (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    const other = openPresence(path, "c2");
    assert.equal(own.isAlive("c2"), true);
    other.close();
    assert.equal(own.isAlive("c2"), false);
  });

  test("of one database says nothing of another beside it", (t) => {
    const path = newDatabasePath(t);
    const own = open(t, path, "c1");
    open(t, `${path}2`, "c2");
    assert.equal(own.isAlive("c2"), false);
  });
});

describe("openPresence()", () => {
  test("makes an empty file that only its owner may read", (t) => {
    const path = newDatabasePath(t);
    open(t, path, "c1");
    const { mode, size } = statSync(`${path}-process-c1`);
    assert.deepEqual([mode & 0o777, size], [0o600, 0]);
  });

  test("removes the files of the dead, and no others", async (t) => {
    const path = newDatabasePath(t);
    writeFileSync(path, "");
    writeFileSync(`${path}-process-c1`, "");
    await startOther(t, path, "c2");
    open(t, path, "c3");
    assert.deepEqual(files(path).sort(), [
      "gatepost.db", "gatepost.db-process-c2", "gatepost.db-process-c3",
    ]);
  });

  test("leaves nothing behind once it is closed", (t) => {
    const path = newDatabasePath(t);
    openPresence(path, "c1").close();
    assert.equal(existsSync(`${path}-process-c1`), false);
  });

  test("of many processes at once shows each to each", async (t) => {
    const path = newDatabasePath(t);
    const names = ["c1", "c2", "c3", "c4"];
    await Promise.all(names.map((name) => startOther(t, path, name)));
    const own = open(t, path, "c5");
    assert.deepEqual(names.map((name) => own.isAlive(name)), [true, true, true, true]);
  });
});
