import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { ConflictError, type Database } from "../../src/database/database.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { sql } from "../../src/database/sql.ts";
import type { Event } from "../../src/event/event.ts";
import { declareEvents } from "../../src/store/authority.ts";
import {
  EVENT_LIST,
  findEvent,
  findEventByKey,
  insertEvent,
  insertEvents,
  listDispatched,
} from "../../src/store/events.ts";
import { listPart } from "../../src/store/list.ts";
import { purge } from "../../src/store/purge.ts";
import { addUser, makeFolder, openDatabase } from "../helpers/database.ts";
import { writeOldDatabase } from "../helpers/old_database.ts";

const NOW_MS = Date.UTC(2026, 0, 31);
const DAY_MS = 86_400_000;

function sampleEvent(more: Partial<Event> = {}): Event {
  const createdAtMs = more.createdAtMs ?? NOW_MS;
  return {
    id: newId("e", createdAtMs),
    name: "order.created",
    json: "1",
    subject: undefined,
    key: undefined,
    createdAtMs,
    ...more,
  };
}

/** Stores events in one batch: 1 for each that was stored, 0 for the others. */
async function store(database: Database, ...events: readonly Event[]): Promise<number[]> {
  return database.write(events.map(insertEvent));
}

async function listIds(database: Database): Promise<string[]> {
  const { items } = await listPart(database, EVENT_LIST, { limit: 100 });
  return items.map(({ id }) => id).sort();
}

test("with a distributor an event is pending only if it has a subscriber", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const dispatchWith = async (...statuses: readonly string[]) => {
    await database.write([
      sql`DELETE FROM subscriptions`,
      ...statuses.map((status, index) =>
        sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret,
            createdAtMs)
          VALUES (${`s${index}`}, ${user}, 'login', 'order.created', ${`https://a/${index}`},
            ${status}, '', 1)`
      ),
    ]);
    const { id, ...event } = sampleEvent();
    const other = { ...event, id: `${id}x`, name: "order.paid" };
    await database.write([insertEvents([{ id, ...event }, other], true)]);
    return [(await findEvent(database, id))?.status, (await findEvent(database, other.id))?.status];
  };
  assert.deepEqual(await dispatchWith(), ["distributed", "distributed"]);
  assert.deepEqual(await dispatchWith("disabled", "deleted"), ["distributed", "distributed"]);
  assert.deepEqual(await dispatchWith("disabled", "active"), ["pending", "distributed"]);
  assert.deepEqual(await dispatchWith("paused"), ["pending", "distributed"]);
});

test("without a distributor an event is pending even if it has no subscriber", async (t) => {
  const database = openDatabase(t);
  const events = [sampleEvent(), sampleEvent()];
  await database.write([insertEvents(events, false)]);
  for (const { id } of events) assert.equal((await findEvent(database, id))?.status, "pending");
});

test("of events with the same name and key one is stored, in one batch or several", async (t) => {
  const database = openDatabase(t);
  const first = sampleEvent({ key: "7" });
  assert.deepEqual(await store(database, first, sampleEvent({ key: "7", json: "2" })), [1, 0]);
  assert.deepEqual(await store(database, sampleEvent({ key: "7", subject: "u00000001" })), [0]);
  assert.deepEqual(await listIds(database), [first.id]);
  assert.equal(await findEventByKey(database, "order.created", "7"), first.id);
});

test("insertEvents() stores events as given, but only the first of a name and key", async (t) => {
  const database = openDatabase(t);
  const origin = { source: "POST /a", request: "r1" };
  const events = [
    sampleEvent({ json: '{"a":"\\u0000 \\" \\\\ 😀"}', ...origin }),
    sampleEvent({ name: "b", key: "7", subject: "u00000001" }),
    sampleEvent({ name: "b", key: "7" }),
    sampleEvent({ createdAtMs: NOW_MS - 1 }),
  ];
  assert.deepEqual(await database.write([insertEvents(events, false)]), [3]);
  const [first, second, , last] = events;
  const stored = (await listDispatched(database)).map((row) => ({ ...row }));
  assert.deepEqual(stored, [first, second, last].map((event) => ({
    id: event?.id,
    name: event?.name,
    subject: event?.subject ?? null,
    key: event?.key ?? null,
    json: event?.json,
  })));
  const { source, request, createdAtMs } = { ...await findEvent(database, first?.id ?? "") };
  assert.deepEqual([source, request, createdAtMs], ["POST /a", "r1", NOW_MS]);
});

test("an event is found with the scopes that were declared when it was stored", async (t) => {
  const database = openDatabase(t);
  const [free, scoped] = [sampleEvent({ name: "free" }), sampleEvent({ name: "scoped" })];
  await database.write([declareEvents([{ name: "scoped", scope: ["orders", "a:b"] }])]);
  await store(database, free, scoped);
  await database.write([declareEvents([{ name: "scoped", scope: [] }])]);
  const scopes = [free, scoped].map(async ({ id }) => (await findEvent(database, id))?.scope);
  assert.deepEqual(await Promise.all(scopes), [null, "orders a:b"]);
});

test("events with different names or keys, or without a key, are all stored", async (t) => {
  const database = openDatabase(t);
  const events = [
    sampleEvent({ key: "7" }),
    sampleEvent({ key: "7", name: "order.paid" }),
    ...["8", "7 ", "７", "A", "a", "0", "00", "a\0b", "a\0c", "\0"]
      .map((key) => sampleEvent({ key })),
    sampleEvent(),
    sampleEvent(),
  ];
  assert.deepEqual(await store(database, ...events), events.map(() => 1));
  assert.deepEqual(await listIds(database), events.map(({ id }) => id).sort());
});

test("an event whose id is stored already is a conflict, also with another key", async (t) => {
  const database = openDatabase(t);
  const event = sampleEvent({ key: "7" });
  await store(database, event);
  await assert.rejects(store(database, { ...event, key: "8" }), ConflictError);
});

test("two processes that store one key at once store one event", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const stored = await Promise.all(Array.from({ length: 40 }, (_, index) =>
    Promise.all(databases.map((database) =>
      store(database, sampleEvent({ key: String(index) }))
    ))
  ));
  assert.deepEqual(stored.map((changes) => changes.flat().sort()), stored.map(() => [0, 1]));
});

test("a key is free again once its event is purged", async (t) => {
  const database = openDatabase(t);
  const retention = { eventsMs: DAY_MS, auditMs: DAY_MS };
  const { signal } = new AbortController();
  await store(database, sampleEvent({ key: "7" }));
  await database.write([sql`UPDATE events SET status = 'distributed'`]);

  await purge(database, retention, NOW_MS + DAY_MS - 1, signal);
  assert.deepEqual(await store(database, sampleEvent({ key: "7" })), [0]);
  await purge(database, retention, NOW_MS + DAY_MS + 1, signal);
  assert.deepEqual(await store(database, sampleEvent({ key: "7" })), [1]);
});

test("a migrated database of version 0.1.0 stores events with keys", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeOldDatabase(path);
  prepareSqliteFile(path);
  const database = openDatabase(t, path);
  const data = "x".repeat(10_000);
  const events = [1, 2].map(() => sampleEvent({ key: "7", json: JSON.stringify(data) }));
  assert.deepEqual(await store(database, ...events), [1, 0]);
  assert.equal(await findEventByKey(database, "order.created", "7"), events[0]?.id);
});
