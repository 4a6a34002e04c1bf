import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Problem } from "../../../src/base/problem.ts";
import { cronjobOperations } from "../../../src/api/backend/cronjob.ts";
import { type Database, UnavailableError } from "../../../src/database/database.ts";
import { sql } from "../../../src/database/sql.ts";
import { openDatabase } from "../../helpers/database.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const CALLER = backendCaller(NOW_MS + 1000);

/** Job `tick`, which runs or not; `ran` returns how often it was run by hand. */
function openStage(t: TestContext, isRunning: boolean, more: Partial<Database> = {}) {
  const stored = openDatabase(t);
  let ran = 0;
  const job = {
    name: "tick",
    everyMs: 1000,
    isRunning,
    lastAtMs: null,
    lastDurationMs: null,
    lastError: null,
    nextAtMs: NOW_MS,
  };
  const operations = cronjobOperations({
    database: { ...stored, ...more },
    jobs: {
      listCronjobs: () => Promise.resolve([job]),
      runCronjob() {
        ran++;
        return Promise.resolve("started");
      },
    },
    now: () => NOW_MS,
  });
  const operation = operations.find(({ id }) => id === "runCronjob");
  const run = (name: string) =>
    operation?.handle({
      request: sampleRequest(),
      params: { name },
      caller: CALLER,
      query: {},
      body: undefined,
      authenticateAgain: () => Promise.resolve(),
    });
  const audited = async () => (await stored.query(sql`SELECT 1 FROM audit`)).length;
  return { run, audited, ran: () => ran };
}

test("a run of a job by hand is audited", async (t) => {
  const { run, audited, ran } = openStage(t, false);
  assert.equal((await run("tick"))?.status, 202);
  assert.deepEqual([ran(), await audited()], [1, 1]);
});

test("a job is not run where the run cannot be audited", async (t) => {
  const write = () => Promise.reject(new UnavailableError("locked"));
  const { run, ran } = openStage(t, false, { write });
  await assert.rejects(async () => run("tick"), UnavailableError);
  assert.equal(ran(), 0);
});

const REFUSED = [["a running job", "tick", 409], ["an unknown job", "tock", 404]] as const;
for (const [what, name, status] of REFUSED) {
  test(`the run of ${what} is refused, and not audited`, async (t) => {
    const { run, audited, ran } = openStage(t, true);
    await assert.rejects(
      async () => run(name),
      (error) => error instanceof Problem && error.status === status,
    );
    assert.deepEqual([ran(), await audited()], [0, 0]);
  });
}
