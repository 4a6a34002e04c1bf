import assert from "node:assert/strict";
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createDiskReader } from "../../src/database/disk.ts";
import { makeFolder } from "../helpers/database.ts";

test("createDiskReader() measures the disk at most once a minute", async (t) => {
  const folder = join(makeFolder(t), "data");
  mkdirSync(folder);
  let nowMs = 0;
  const read = createDiskReader(folder, () => nowMs);
  const { freeBytes = -1, totalBytes = -1 } = await read() ?? {};
  assert.ok(freeBytes >= 0 && totalBytes > 1_048_576 && freeBytes <= totalBytes);
  rmdirSync(folder);
  nowMs = 59_999;
  assert.deepEqual(await read(), { freeBytes, totalBytes });
  nowMs = 60_000;
  assert.equal(await read(), undefined, "the folder is gone");
});
