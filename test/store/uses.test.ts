import assert from "node:assert/strict";
import { test } from "node:test";
import { insertGrant, listGrants } from "../../src/store/grants.ts";
import { createUses } from "../../src/store/uses.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { addUser, openDatabase, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

test("a token's last use is stored once a flush, and never moves back", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const grant = sampleGrant("login", user);
  await insertGrant(database, grant);
  const writes: number[] = [];
  const counted: Database = {
    ...database,
    write(batch) {
      writes.push(batch.length);
      return database.write(batch);
    },
  };
  let nowMs = NOW_MS;
  const uses = createUses(counted, () => nowMs);
  const token = { caller: callerOf(user, grant.id), notedIn: 0 };
  const lastUsed = async () => {
    return (await listGrants(database, { user, limit: 1 }, NOW_MS)).items[0]?.lastUsedAtMs;
  };

  await uses.flush();
  assert.equal(await lastUsed(), null);
  for (let count = 0; count < 1_000; count++) uses.note(token);
  await uses.flush();
  await uses.flush();
  assert.equal(await lastUsed(), NOW_MS);
  nowMs = NOW_MS + 60_000;
  uses.note(token);
  await uses.flush();
  assert.equal(await lastUsed(), NOW_MS + 60_000);
  nowMs = NOW_MS - 60_000;
  uses.note(token);
  await uses.flush();
  assert.equal(await lastUsed(), NOW_MS + 60_000);
  assert.deepEqual(writes, [1, 1, 1]);
});

test("a use that the database refuses is stored by the next flush", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [once, again] = [sampleGrant("login", user), sampleGrant("login", user)];
  for (const grant of [once, again]) await insertGrant(database, grant);
  const refused = t.mock.method(database, "write", () =>
    Promise.reject(new UnavailableError("locked")));
  let nowMs = NOW_MS;
  const uses = createUses(database, () => nowMs);
  const note = ({ id }: typeof once) => uses.note({ caller: callerOf(user, id), notedIn: 0 });
  note(once);
  note(again);
  await assert.rejects(uses.flush(), UnavailableError);
  nowMs += 60_000;
  note(again);
  refused.mock.restore();
  await uses.flush();
  const { items } = await listGrants(database, { user, limit: 2 }, NOW_MS);
  const used = new Map(items.map(({ id, lastUsedAtMs }) => [id, lastUsedAtMs]));
  assert.deepEqual([used.get(once.id), used.get(again.id)], [NOW_MS, NOW_MS + 60_000]);
});

test("at most 5,000 uses are kept between two flushes", async (t) => {
  const database = openDatabase(t);
  const uses = createUses(database, () => NOW_MS);
  for (let count = 0; count < 20_000; count++) {
    uses.note({ caller: callerOf("u1", `g${count}`), notedIn: 0 });
  }
  let length = 0;
  t.mock.method(database, "write", async ([statement]: Parameters<Database["write"]>[0]) => {
    length = JSON.parse(String(statement?.params[0])).length;
    return [];
  });
  await uses.flush();
  assert.equal(length, 5_000);
});

test("while the database refuses, at most 5,000 uses are kept, and the oldest stay", async (t) => {
  const database = openDatabase(t);
  const uses = createUses(database, () => NOW_MS);
  const sent: [grant: string, atMs: number][][] = [];
  t.mock.method(database, "write", async ([statement]: Parameters<Database["write"]>[0]) => {
    sent.push(JSON.parse(String(statement?.params[0])));
    note(sent.length); // while it is being stored
    throw new UnavailableError("full");
  });
  const note = (round: number) => {
    for (let count = 0; count < 5_000; count++) {
      uses.note({ caller: callerOf("u1", `g${round}.${count}`), notedIn: 0 });
    }
  };
  note(0);
  for (let round = 0; round < 4; round++) await assert.rejects(uses.flush(), UnavailableError);
  assert.deepEqual(sent.map(({ length }) => length), [5_000, 5_000, 5_000, 5_000]);
  assert.equal(sent[3]?.[0]?.[0], "g0.0");
});

function callerOf(sub: string, grantId: string) {
  const caller = { sub, kind: "user", clientId: "login", scopes: [], grantId } as const;
  return { ...caller, jti: `${grantId}0`, expiresAtMs: NOW_MS };
}
