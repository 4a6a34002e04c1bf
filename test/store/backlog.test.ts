import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { measureBacklog } from "../../src/store/backlog.ts";
import type { Database } from "../../src/database/database.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { createDataFolder } from "../helpers/process.ts";

const START_MS = Date.UTC(2030, 0, 1);
const NOW_MS = START_MS + 3_600_000;

let ids = 0;

/** An id that says it was made then, whatever was made before (base/id.ts). */
function newId(kind: string, atMs: number): string {
  ids++;
  return kind + atMs.toString(36).padStart(9, "0") + ids.toString(36).padStart(15, "0");
}

interface Stage {
  readonly database: Database;
  /** Adds a subscription with deliveries of events that were dispatched then, each due then. */
  addDeliveries(
    status: "active" | "paused",
    deliveries: Iterable<{ dispatchedAtMs: number; dueAtMs: number; status?: string }>,
    failing?: boolean,
  ): void;
  addEvent(dispatchedAtMs: number, status: string): void;
  measure(): ReturnType<typeof measureBacklog>;
}

async function openStage(t: TestContext): Promise<Stage> {
  const folder = await createDataFolder();
  const path = join(folder, "gatepost.db");
  const database = openSqliteDatabase(path);
  const writer = new DatabaseSync(path, { timeout: 1000 });
  t.after(async () => {
    writer.close();
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  const addSubscription = writer.prepare(
    `INSERT INTO subscriptions
       (id, principal, app, event, endpoint, status, secret, hasSucceeded,
        failingSinceMs, dueAtMs, createdAtMs)
     VALUES (?, 'u1', 'login', 'e', 'http://a/' || ?, ?, 's', 1, ?, ?, 0)`,
  );
  const addDelivery = writer.prepare(
    "INSERT INTO deliveries (id, event, subscription, status, dueAtMs) VALUES (?, ?, ?, ?, ?)",
  );
  const addEvent = writer.prepare(
    `INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
     VALUES (?, 'e', '1', '[]', ?, 0, ?)`,
  );
  return {
    database,
    addDeliveries(status, deliveries, failing = false) {
      writer.exec("BEGIN");
      const id = newId("s", START_MS);
      const failingSinceMs = failing ? START_MS : null;
      const { lastInsertRowid } = addSubscription.run(id, id, status, failingSinceMs, START_MS);
      for (const { dispatchedAtMs, dueAtMs, status: state = "pending" } of deliveries) {
        const event = newId("e", dispatchedAtMs);
        addDelivery.run(`d${event.slice(1)}00000001`, event, lastInsertRowid, state, dueAtMs);
      }
      writer.exec("COMMIT");
    },
    addEvent: (dispatchedAtMs, status) =>
      void addEvent.run(newId("e", dispatchedAtMs), status, dispatchedAtMs),
    measure: () => measureBacklog(database, NOW_MS),
  };
}

test("an empty database has no backlog and no age", async (t) => {
  const { measure } = await openStage(t);
  const none = { events: 0, deliveries: 0, oldestMs: undefined, overdueSinceMs: undefined };
  assert.deepEqual(await measure(), none);
});

test("finished events and deliveries do not count", async (t) => {
  const { addEvent, addDeliveries, measure } = await openStage(t);
  addEvent(START_MS, "distributed");
  addDeliveries("active", ["delivered", "failed", "cancelled"].map((status, index) => (
    { dispatchedAtMs: START_MS + index, dueAtMs: START_MS, status }
  )));
  const { events, deliveries, oldestMs } = await measure();
  assert.deepEqual([events, deliveries, oldestMs], [0, 0, undefined]);
});

test("the age counts from the oldest dispatch, the delay from the earliest due time", async (t) => {
  const { addDeliveries, measure } = await openStage(t);
  addDeliveries("active", [
    { dispatchedAtMs: START_MS + 5000, dueAtMs: NOW_MS - 1000 },
    { dispatchedAtMs: START_MS + 7000, dueAtMs: NOW_MS - 3000 },
  ]);
  addDeliveries("active", [{ dispatchedAtMs: START_MS + 4000, dueAtMs: NOW_MS + 60_000 }], true);
  assert.deepEqual(await measure(), {
    events: 0,
    deliveries: 3,
    oldestMs: START_MS + 4000,
    overdueSinceMs: NOW_MS - 3000,
  });
});

test("a paused subscription's deliveries count, but have no age", async (t) => {
  const { addDeliveries, measure } = await openStage(t);
  addDeliveries("paused", [{ dispatchedAtMs: START_MS, dueAtMs: START_MS }]);
  const { deliveries, oldestMs, overdueSinceMs } = await measure();
  assert.deepEqual([deliveries, oldestMs, overdueSinceMs], [1, undefined, undefined]);
});

test("an event that is not fanned out counts, and is overdue since its dispatch", async (t) => {
  const { addEvent, measure } = await openStage(t);
  addEvent(START_MS + 9000, "pending");
  assert.deepEqual(await measure(), {
    events: 1,
    deliveries: 0,
    oldestMs: START_MS + 9000,
    overdueSinceMs: START_MS + 9000,
  });
});

test("many deliveries are counted in parts, and other work runs in between", async (t) => {
  const { addDeliveries, measure } = await openStage(t);
  const many = Array.from({ length: 40_001 }, (_, index) => (
    { dispatchedAtMs: START_MS + index, dueAtMs: NOW_MS + index }
  ));
  addDeliveries("active", many);
  let rounds = 0;
  let other = setImmediate(function work() {
    rounds++;
    other = setImmediate(work);
  });
  const { deliveries, oldestMs } = await measure();
  clearImmediate(other);
  assert.deepEqual([deliveries, oldestMs], [40_001, START_MS]);
  assert.ok(rounds >= 2, `${rounds}`);
});

test("measureBacklog() stops counting at a million", async () => {
  const endless: Pick<Database, "query"> = {
    async query<Row>() {
      return [{ id: null, dueAtMs: null, count: 20_000, last: "d" } as Row];
    },
  };
  const { events, deliveries } = await measureBacklog(endless as Database, NOW_MS);
  assert.deepEqual([events, deliveries], [1_000_000, 1_000_000]);
});
