import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createRecorder } from "../../src/delivery/recorder.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import type { AttemptRecord } from "../../src/store/deliveries.ts";
import { addUser, openDatabase } from "../helpers/database.ts";
import { SILENT } from "../helpers/silent_log.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const LEASE_MS = NOW_MS + 60_000;

test("record() stores an attempt, and releases only the requeued deliveries", async (t) => {
  const { recorder, list } = await stage(t, 4);
  await recorder.record(attempt("d1"), [{ id: "d2", subscription: 1 }]);
  assert.deepEqual(await list(), ["d1 delivered", "d2 pending", "d3 claimed", "d4 claimed"]);
  const held = ["d1", "d2", "d3", "d4"].map(recorder.isHeld);
  assert.deepEqual(held, [false, false, true, true]);
});

test("attempts are stored one by one if they cannot be stored together", async (t) => {
  const { recorder, list, refuse } = await stage(t, 3);
  refuse(1);
  await Promise.all(["d1", "d2"].map((id) => recorder.record(attempt(id), [])));
  assert.deepEqual(await list(), ["d1 delivered", "d2 delivered", "d3 claimed"]);
  assert.deepEqual(["d1", "d2"].map(recorder.isHeld), [false, false]);
});

for (const status of [200, 500]) {
  test(`an attempt that ended with ${status} is held until it is stored`, async (t) => {
    const { recorder, list, refuse, refused } = await stage(t, 1);
    refuse(2);
    const recorded = recorder.record(attempt("d1", status), []);
    while (refused() === 0) {
      assert.equal(recorder.isHeld("d1"), true);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([await list(), recorder.isHeld("d1")], [["d1 claimed"], true]);
    await recorded;
    assert.deepEqual(await list(), [status === 200 ? "d1 delivered" : "d1 pending"]);
    assert.equal(recorder.isHeld("d1"), false);
  });
}

test("a recorder that stops leaves what it cannot store to other processes", async (t) => {
  const { recorder, list, refuse, refused, stop } = await stage(t, 2);
  refuse(Infinity);
  stop();
  await recorder.record(attempt("d1"), [{ id: "d2", subscription: 1 }]);
  assert.ok(refused() > 0);
  assert.deepEqual(await list(), ["d1 claimed", "d2 claimed"]);
});

function attempt(id: string, status = 200): AttemptRecord {
  return {
    id,
    subscription: 1,
    endpoint: "https://a.example/",
    startedAtMs: NOW_MS,
    attempt: 1,
    durationMs: 5,
    outcome: { kind: "response", status },
    meanMs: undefined,
    snippet: undefined,
  };
}

/** A recorder that holds `count` deliveries, `d1` and so on; its database can be made to fail. */
async function stage(t: TestContext, count: number) {
  const stored = openDatabase(t);
  const user = await addUser(stored);
  const ids = Array.from({ length: count }, (_, at) => `d${at + 1}`);
  await stored.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES ('s1', ${user}, 'login', 'x', 'https://a.example/', 'active', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES ('e1', 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, claim, dueAtMs)
      SELECT value, 'e1', 1, 'pending', 'c1', ${LEASE_MS} FROM json_each(${JSON.stringify(ids)})`,
  ]);
  let [times, refused] = [0, 0];
  let isStopping = false;
  const database: Database = {
    ...stored,
    async write(batch) {
      if (times === 0) return await stored.write(batch);
      times--;
      refused++;
      throw new UnavailableError("locked");
    },
  };
  const recorder = createRecorder({
    database,
    claim: "c1",
    log: SILENT,
    now: () => NOW_MS,
    elapsedMs: () => 0,
    random: () => 0.5,
    settings: { resendDelaysMs: [10_000], disableAfterMs: 0 },
  }, () => Promise.resolve(), () => isStopping);
  for (const id of ids) recorder.hold(id);
  return {
    recorder,
    /** Makes the next writes fail. */
    refuse: (writes: number) => void (times = writes),
    refused: () => refused,
    stop: () => void (isStopping = true),
    /** Each delivery with its status, or with "claimed". */
    list: async () => {
      const rows = await stored.query<{ id: string; status: string; claim: string | null }>(
        sql`SELECT id, status, claim FROM deliveries ORDER BY id`,
      );
      return rows.map(({ id, status, claim }) => `${id} ${claim ? "claimed" : status}`);
    },
  };
}
