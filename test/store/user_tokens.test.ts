import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import type { Database } from "../../src/database/database.ts";
import { findValue } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { findGrant, insertGrant } from "../../src/store/grants.ts";
import { insertKey } from "../../src/store/key_ring.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { findSession, insertSession } from "../../src/store/sessions.ts";
import { revokeTokensOfUser } from "../../src/store/users.ts";
import { addApp, addUser, openDatabase, sampleGrant } from "../helpers/database.ts";
import { callerOf, HOUR_MS, listCodes, NOW_MS, putCode } from "../helpers/grant_stage.ts";

const notBeforeMsOf = (database: Database, id: string) =>
  findValue<number>(database, sql`SELECT notBeforeMs FROM users WHERE id = ${id}`);

test("revokeTokensOfUser() ends the user's sessions and earlier tokens", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const other = await addUser(database);
  const app = await addApp(database);
  const revocations = await loadRevocations(database, () => NOW_MS + 10);
  const before = { id: newId("g", NOW_MS), app, user };
  await database.write([
    insertSession(Buffer.from("one"), user, NOW_MS, NOW_MS + HOUR_MS),
    insertSession(Buffer.from("two"), other, NOW_MS, NOW_MS + HOUR_MS),
  ]);
  await database.write(revokeTokensOfUser(user, NOW_MS + 10, HOUR_MS));
  await revocations.refresh();

  assert.equal((await findSession(database, Buffer.from("one"), NOW_MS + 11))?.user, undefined);
  assert.equal((await findSession(database, Buffer.from("two"), NOW_MS + 11))?.user, other);
  assert.equal((await database.query(sql`SELECT 1 FROM sessions`)).length, 1);
  assert.equal(revocations.has(callerOf(before)), true);
  assert.equal(revocations.has(callerOf({ ...before, id: newId("g", NOW_MS + 10) })), true);
  assert.equal(revocations.has(callerOf({ ...before, id: newId("g", NOW_MS + 20) })), false);
  assert.equal(revocations.has(callerOf({ ...before, user: other })), false);
  assert.equal(await notBeforeMsOf(database, user), NOW_MS + 10);
});

test("revokeTokensOfUser() never moves notBeforeMs back", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, NOW_MS + 100, HOUR_MS));
  await database.write(revokeTokensOfUser(user, NOW_MS, HOUR_MS));
  assert.equal(await notBeforeMsOf(database, user), NOW_MS + 100);
});

test("revokeTokensOfUser() also holds for tokens issued with a longer lifetime", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  const madeAtMs = Date.UTC(2026, 1, 1);
  let nowMs = madeAtMs;
  const key = { kid: "k1", alg: "ES256", private: "", createdAtMs: 1, signsFromMs: 1 } as const;
  await database.write([insertKey({ ...key, tokenTtlMs: 24 * HOUR_MS })]);
  const lives = { refresh: undefined, refreshUntilMs: 0, accessUntilMs: madeAtMs + 24 * HOUR_MS };
  const grant = sampleGrant(app, user, { id: newId("g", madeAtMs), ...lives });
  await insertGrant(database, grant);
  // Meanwhile the service was started again with access tokens that live a minute.
  await database.write(revokeTokensOfUser(user, madeAtMs + 1, 60_000));
  const revocations = await loadRevocations(database, () => nowMs);
  for (const hours of [0, 1, 23]) {
    nowMs = madeAtMs + hours * HOUR_MS + 1;
    await revocations.refresh();
    assert.equal(revocations.has(callerOf(grant)), true, `after ${hours} hours`);
  }
  const rows = await database.query<{ untilMs: number }>(
    sql`SELECT untilMs FROM revocations WHERE target = ${user}`,
  );
  assert.ok((rows[0]?.untilMs ?? 0) >= madeAtMs + 24 * HOUR_MS);
});

test("revokeTokensOfUser() ends grants and codes made before the clock was set back", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  const aheadMs = Date.UTC(2026, 2, 1);
  const revokedMs = aheadMs - HOUR_MS;
  const grant = sampleGrant(app, user, {
    id: newId("g", aheadMs),
    refreshUntilMs: aheadMs + HOUR_MS,
    accessUntilMs: aheadMs + HOUR_MS,
  });
  await insertGrant(database, grant);
  await database.write([putCode(newId("g", aheadMs), app, user)]);
  await database.write(revokeTokensOfUser(user, revokedMs, HOUR_MS));
  const revocations = await loadRevocations(database, () => revokedMs);
  assert.equal(revocations.has(callerOf(grant)), true);
  assert.equal((await findGrant(database, grant.id))?.revokedAtMs, revokedMs);
  assert.deepEqual(await listCodes(database), []);
});
