import assert from "node:assert/strict";
import { test } from "node:test";
import { findProblems } from "../../../src/api/backend/problem.ts";
import type { Services } from "../../../src/services.ts";
import { openDatabase } from "../../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const GIB = 2 ** 30;

test("a disk is a problem with less than 1 GiB or 5 % free", async (t) => {
  const database = openDatabase(t);
  const find = async (freeBytes: number, totalBytes: number) =>
    findProblems({
      database,
      readiness: async () => ({ isReady: true, parts: {} }),
      keys: { signing: () => ({ signsFromMs: NOW_MS }) },
      jobs: { listCronjobs: async () => [] },
      warnings: [],
      disk: async () => ({ freeBytes, totalBytes }),
      config: { disableAfterMs: 0 },
      now: () => NOW_MS,
    } as unknown as Services); // what it names of them
  assert.deepEqual(await find(GIB, 20 * GIB), []);
  assert.deepEqual(await find(5 * GIB, 100 * GIB), []);
  const [problem, ...others] = await find(GIB - 1, 10 * GIB);
  assert.deepEqual(others, []);
  assert.deepEqual([problem?.id, problem?.kind], ["disk", "disk"]);
  assert.equal(problem?.detail, "1023 MiB (9 %) are free where the database is.");
  assert.equal((await find(5 * GIB - 1, 100 * GIB))[0]?.kind, "disk");
  assert.equal((await find(0, 100 * GIB))[0]?.detail,
    "0 MiB (0 %) are free where the database is.");
});
