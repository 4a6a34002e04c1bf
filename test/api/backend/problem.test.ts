import assert from "node:assert/strict";
import { test } from "node:test";
import { findProblems } from "../../../src/api/backend/problem.ts";
import { newId } from "../../../src/base/id.ts";
import type { Database } from "../../../src/database/database.ts";
import { sql } from "../../../src/database/sql.ts";
import type { Services } from "../../../src/services.ts";
import { openDatabase } from "../../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const GIB = 2 ** 30;

/** The problems of a process in which all else is well. */
function find(
  database: Database,
  { disk, cluster, disableAfterMs = 0 }: {
    readonly cluster?: Services["cluster"];
    readonly disk?: Record<"freeBytes" | "totalBytes", number>;
    readonly disableAfterMs?: number;
  },
) {
  return findProblems({
    database,
    readiness: async () => ({ isReady: true, parts: {} }),
    keys: { findSigning: () => ({ signsFromMs: NOW_MS }) },
    jobs: { listCronjobs: async () => [] },
    warnings: [],
    disk: async () => disk,
    cluster,
    config: { disableAfterMs },
    now: () => NOW_MS,
  } as unknown as Services); // the ones that it uses
}

test("a disk with less than 1 GiB or less than 5 % free is a problem", async (t) => {
  const database = openDatabase(t);
  const findOf = (freeBytes: number, totalBytes: number) =>
    find(database, { disk: { freeBytes, totalBytes } });
  assert.deepEqual(await findOf(GIB, 20 * GIB), []);
  assert.deepEqual(await findOf(5 * GIB, 100 * GIB), []);
  const [problem, ...others] = await findOf(GIB - 1, 10 * GIB);
  assert.deepEqual(others, []);
  assert.deepEqual([problem?.id, problem?.kind], ["disk", "disk"]);
  assert.equal(problem?.detail, "1023 MiB (9 %) are free where the database is.");
  assert.equal((await findOf(5 * GIB - 1, 100 * GIB))[0]?.kind, "disk");
  assert.equal((await findOf(0, 100 * GIB))[0]?.detail,
    "0 MiB (0 %) are free where the database is.");
});

test("a cluster node that does not work is a problem", async (t) => {
  const nodes = [["10.0.0.1:4001", true], ["10.0.0.2:4001", false]] as const;
  const cluster = { nodes: () => [...nodes], skewMs: () => 0 };
  const [problem, ...others] = await find(openDatabase(t), { cluster });
  assert.deepEqual(others, []);
  assert.deepEqual([problem?.id, problem?.kind], ["node-10_0_0_2_4001", "node"]);
  assert.equal(problem?.title, "A node of the database does not work"); // it may respond
  assert.match(problem?.detail ?? "", /^10\.0\.0\.2:4001: see the log\. /);
});

test("the problem of a failing subscription says when that will be disabled", async (t) => {
  const database = openDatabase(t);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        failingSinceMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', 'https://a.example/', 'active', '', 1,
        ${NOW_MS - 1_000})`,
  ]);
  const detail = async (disableAfterMs: number) =>
    (await find(database, { disableAfterMs }))[0]?.detail ?? "";
  assert.match(await detail(1_001), /is disabled at 2026-01-01T00:00:00.001Z\.$/);
  assert.match(await detail(1_000), /is disabled after the next failure\.$/);
  assert.match(await detail(0), /has succeeded since\.$/);
});
