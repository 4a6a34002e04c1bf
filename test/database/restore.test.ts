import assert from "node:assert/strict";
import fs, { copyFileSync, existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { restoreSqlite } from "../../src/database/restore.ts";
import { makeFolder } from "../helpers/database.ts";

/** Not imported by name: imported names would refer to the mocks. */
const { linkSync, renameSync } = fs;

const KEPT = "gatepost.db.before-19700101T000000Z";

for (const hasLinks of [true, false]) {
  const where = hasLinks ? "" : " on a file system without links";
  test(`a restore that fails at any step${where} leaves the database as it was`, async (t) => {
    const { path, attempt } = stage(t, hasLinks);
    for (let step = 1, hasFailed = true; hasFailed; step++) {
      const { error, hasInjected, files } = await attempt(step);
      hasFailed = hasInjected;
      if (error === undefined) {
        assert.deepEqual(files, ["gatepost.db", KEPT]);
        assert.deepEqual([read(path), read(join(path, "..", KEPT))], ["backup", "current"]);
      } else {
        assert.deepEqual([files, read(path)], [["gatepost.db"], "current"], `step ${step}`);
      }
      assert.ok(step > 2 || hasInjected);
    }
  });
}

test("a failed restore of a lost database leaves the log of that database", async (t) => {
  const { path, attempt } = stage(t, true);
  for (let step = 1, hasFailed = true; hasFailed; step++) {
    const { error, hasInjected, files } = await attempt(step, () => rmSync(path));
    hasFailed = hasInjected;
    assert.equal(error === undefined, !hasInjected);
    assert.deepEqual(files, error ? [] : ["gatepost.db"], `step ${step}`);
    assert.equal(existsSync(error ? `${path}-wal` : join(path, "..", `${KEPT}-wal`)), true);
    if (!error) assert.equal(read(path), "backup");
    assert.ok(step > 2 || hasInjected);
  }
});

/** The setting that names the content of a database. */
function read(path: string): unknown {
  using connection = new DatabaseSync(path);
  return connection.prepare("SELECT value FROM settings WHERE name = 'is'").get()?.["value"];
}

/** A database whose last change is only in its log, and an older backup of it. */
function stage(t: TestContext, hasLinks: boolean) {
  const [made, folder] = [makeFolder(t), makeFolder(t)];
  const [origin, backup] = [join(made, "origin.db"), join(made, "backup.db")];
  prepareSqliteFile(origin);
  using connection = new DatabaseSync(origin);
  connection.exec("INSERT INTO settings (name, value) VALUES ('is', 'backup')");
  connection.exec(`VACUUM INTO '${backup}'`);
  connection.exec("UPDATE settings SET value = 'current' WHERE name = 'is'");
  for (const suffix of ["", "-wal"]) copyFileSync(origin + suffix, join(made, `left.db${suffix}`));
  const path = join(folder, "gatepost.db");
  return {
    path,
    /** Restores; the change of a file name at this step fails. */
    async attempt(step: number, lose = () => {}) {
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
      for (const end of ["", "-wal"]) copyFileSync(join(made, `left.db${end}`), path + end);
      lose();
      let steps = 0;
      let [hasInjected, hasBlocked] = [false, false];
      const failing = (call: (from: string, to: string) => void) => (from: string, to: string) => {
        if (++steps !== step) return call(from, to);
        hasInjected = true;
        throw Object.assign(new Error("i/o error"), { code: "EIO" });
      };
      const refuse = () => {
        throw Object.assign(new Error("operation not permitted"), { code: "EPERM" });
      };
      const mocks = [
        t.mock.method(fs, "linkSync", hasLinks ? failing(linkSync) : refuse),
        // The step after the last rename is the flush of the folder, which must fail as well.
        t.mock.method(fs, "renameSync", failing((from, to) => {
          renameSync(from, to);
          if (to === path && from.endsWith(".restoring") && ++steps === step) {
            hasInjected = hasBlocked = true;
            mkdirSync(from);
          }
        })),
      ];
      syncBuiltinESMExports();
      let error: unknown;
      try {
        await restoreSqlite(backup, path, createSeal(), 0, AbortSignal.any([]));
      } catch (thrown) {
        error = thrown;
      }
      for (const { mock } of mocks) mock.restore();
      syncBuiltinESMExports();
      if (hasBlocked) rmdirSync(`${path}.restoring`);
      const files = readdirSync(folder).filter((name) => !/-(wal|shm)$/.test(name)).sort();
      return { error, hasInjected, files };
    },
  };
}
