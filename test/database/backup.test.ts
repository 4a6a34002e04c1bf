import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { makeFolder, openSqliteFile } from "../helpers/database.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const BACKUP = pathToFileURL(join(ROOT, "src/database/backup.ts")).href;

test("a backup is made under Node's permission model, in the data folder", (t) => {
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
