import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { countRows, makeFolder, openDatabase } from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";
import { caller, grantId, madeAtMs } from "./revocations_stage.ts";

const MINUTE_MS = 60_000;

describe("has()", () => {
  const table: [what: string, target: string, notBeforeMs: number, isRevoked: boolean][] = [
    ["that was revoked itself", caller.jti, madeAtMs + 1, true],
    ["whose grant was revoked", grantId, madeAtMs + 1, true],
    ["whose user's tokens were revoked later", "u1", madeAtMs + 1, true],
    ["whose app's tokens were revoked later", "a1", madeAtMs + 1, true],
    ["whose user withdrew the app's consent later", "u1 a1", madeAtMs + 1, true],
    ["whose user withdrew another app's consent", "u1 a2", madeAtMs + 1, false],
    ["whose user's tokens were revoked in the same millisecond", "u1", madeAtMs, true],
    ["whose app's tokens were revoked in the same millisecond", "a1", madeAtMs, true],
    ["whose user's tokens were revoked earlier", "u1", madeAtMs - 1, false],
    ["whose app's tokens were revoked earlier", "a1", madeAtMs - 1, false],
    ["that was revoked itself while the clock was behind", caller.jti, madeAtMs - HOUR_MS, true],
    ["whose grant was revoked while the clock was behind", grantId, madeAtMs - HOUR_MS, true],
    ["of the grant of another revoked token", `${grantId}fedcba9876543210`, madeAtMs + 1, false],
    ["when another grant was revoked", newId("g", NOW_MS), madeAtMs + 1, false],
    ["when another user's tokens were revoked", "u2", madeAtMs + 1, false],
    ["when another app's tokens were revoked", "a2", madeAtMs + 1, false],
    ["when the tokens of all logins were revoked", "login", madeAtMs + 1, false],
    ["when a revocation has an empty target", "", madeAtMs + 1, false],
  ];
  for (const [what, target, notBeforeMs, isRevoked] of table) {
    test(`is ${isRevoked} for a token ${what}`, async (t) => {
      const database = openDatabase(t);
      const revocations = await loadRevocations(database, () => NOW_MS);
      assert.equal(revocations.has(caller), false);
      await database.write([revocation(target, notBeforeMs, NOW_MS + HOUR_MS)]);
      await revocations.refresh();
      assert.equal(revocations.has(caller), isRevoked);
    });
  }
});

test("has() does not read the database", async (t) => {
  const database = openDatabase(t);
  let queries = 0;
  const counted: Database = {
    ...database,
    query: (statement) => {
      queries++;
      return database.query(statement);
    },
  };
  await database.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  const revocations = await loadRevocations(counted, () => NOW_MS);
  const before = queries;
  for (let round = 0; round < 100; round++) assert.equal(revocations.has(caller), true);
  assert.equal(queries, before);
});

test("loadRevocations() loads what was stored before, as after a restart", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation(caller.jti, NOW_MS, NOW_MS + HOUR_MS)]);
  assert.equal((await loadRevocations(database, () => NOW_MS)).has(caller), true);
});

test("at the start a revocation ahead of the clock is not undone by earlier ones", async (t) => {
  const database = openDatabase(t);
  const aheadMs = NOW_MS + 24 * HOUR_MS;
  // The last is of a clock that was ahead; what is in force for longest is read first.
  await database.write([
    revocation("u1", madeAtMs - 2, NOW_MS + 3 * HOUR_MS),
    revocation("u1", madeAtMs - 1, NOW_MS + 2 * HOUR_MS),
    revocation("u1", aheadMs, aheadMs + HOUR_MS),
  ]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(caller), true);
  await database.write([revocation("u1", madeAtMs - 1, NOW_MS + HOUR_MS)]); // dated back
  await revocations.refresh();
  assert.equal(revocations.has(caller), false);
});

test("a revocation is not undone by one with an earlier time that is stored later", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  // As after a start: the clock that deletions go by is behind (base/steady_clock.ts).
  const revocations = await loadRevocations(database, () => NOW_MS - 2 * MINUTE_MS);
  // By another process, whose clock is a second behind.
  await database.write([revocation("u1", madeAtMs - 1_000, NOW_MS + HOUR_MS)]);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
});

test("refresh() loads what another process has stored", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const [own, other] = [openDatabase(t, path), openDatabase(t, path)];
  const revocations = await loadRevocations(own, () => NOW_MS);
  await other.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  assert.equal(revocations.has(caller), false);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
});

test("refresh() misses no revocation that two processes store at the same time", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const [own] = databases;
  assert.ok(own);
  const revocations = await loadRevocations(own, () => NOW_MS);
  const jtis = Array.from({ length: 200 }, (_, at) => `${grantId}${at}`);
  const writing = jtis.map(async (jti, at) => {
    await (databases[at % 2] ?? own).write([revocation(jti, NOW_MS, NOW_MS + HOUR_MS)]);
    if (at % 7 === 0) await revocations.refresh();
  });
  await Promise.all(writing);
  await revocations.refresh();
  assert.deepEqual(jtis.filter((jti) => revocations.has({ ...caller, jti }) !== true), []);
});

test("refresh() reads only what is new", async (t) => {
  const database = openDatabase(t);
  const rows: number[] = [];
  const counted: Database = {
    ...database,
    query: async <Row>(statement: Sql) => {
      const found = await database.query<Row>(statement);
      if (statement.sql.includes("FROM revocations")) rows.push(found.length);
      return found;
    },
  };
  const end = (target: string) => revocation(target, 1, NOW_MS + HOUR_MS);
  await database.write([end("u7"), end("u8")]);
  const revocations = await loadRevocations(counted, () => NOW_MS);
  rows.length = 0;
  await database.write([end("u9")]);
  await revocations.refresh();
  await revocations.refresh();
  assert.deepEqual(rows, [1, 0]);
});

test("a refresh() that fails leaves open whether the write before it was stored", async (t) => {
  const database = openDatabase(t);
  let isDown = false;
  const revocations = await loadRevocations({
    ...database,
    query: <Row>(select: Sql) =>
      isDown ? Promise.reject(new UnavailableError("down")) : database.query<Row>(select),
  }, () => NOW_MS);
  isDown = true;
  await assert.rejects(revocations.refresh(), { name: "OutcomeUnknownError" });
});

test("of several revocations of a target the one with the latest time counts", async (t) => {
  const database = openDatabase(t);
  const revocations = await loadRevocations(database, () => NOW_MS);
  for (const [notBeforeMs, isRevoked] of [
    [madeAtMs - 10, false],
    [madeAtMs + 10, true],
    [madeAtMs - 5, true],
  ] as const) {
    await database.write([revocation("u1", notBeforeMs, NOW_MS + HOUR_MS)]);
    await revocations.refresh();
    assert.equal(revocations.has(caller), isRevoked);
  }
});

test("a revocation is forgotten once it has expired, and not before", async (t) => {
  const database = openDatabase(t);
  let nowMs = NOW_MS;
  await database.write([
    revocation("u1", madeAtMs, NOW_MS + HOUR_MS),
    revocation("u2", madeAtMs, NOW_MS + 5 * HOUR_MS),
  ]);
  const revocations = await loadRevocations(database, () => nowMs);
  const at = async (timeMs: number) => {
    nowMs = timeMs;
    await revocations.refresh();
    return [revocations.has(caller), revocations.has({ ...caller, sub: "u2" })];
  };
  assert.deepEqual(await at(NOW_MS + HOUR_MS - 1), [true, true]);
  assert.deepEqual(await at(NOW_MS + HOUR_MS + MINUTE_MS), [false, true]);
  assert.deepEqual(await at(NOW_MS + 5 * HOUR_MS + MINUTE_MS), [false, false]);
});

test("of two revocations of one target the one that expires later counts", async (t) => {
  const database = openDatabase(t);
  let nowMs = NOW_MS;
  await database.write([
    revocation("u1", madeAtMs, NOW_MS + 5 * HOUR_MS),
    revocation("u1", madeAtMs, NOW_MS + HOUR_MS),
  ]);
  const revocations = await loadRevocations(database, () => nowMs);
  nowMs = NOW_MS + 4 * HOUR_MS;
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
});

test("a revocation that is deleted from the table stays in force in memory", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  await database.write([{ sql: "DELETE FROM revocations", params: [] }]);
  await database.write([revocation("u5", madeAtMs, NOW_MS + HOUR_MS)]);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
  assert.equal(revocations.has({ ...caller, sub: "u5" }), true);
});

test("expired revocations are not read, neither at the start nor later", async (t) => {
  const database = openDatabase(t);
  await database.write(Array.from({ length: 20 }, (_, at) => revocation(`j${at}`, 1, NOW_MS)));
  await database.write([revocation("u1", madeAtMs, NOW_MS + 1)]);
  await database.write([revocation("j20", 1, NOW_MS)]);
  const { counted, found } = countRows(database);
  const revocations = await loadRevocations(counted, () => NOW_MS);
  assert.equal(revocations.has(caller), true);
  await revocations.refresh();
  assert.ok(found.rows <= 4, `${found.rows} rows`); // two are the number of account changes
  await database.write([revocation("u2", madeAtMs, NOW_MS + 1)]);
  await revocations.refresh();
  assert.equal(revocations.has({ ...caller, sub: "u2" }), true);
});

test("more revocations than one read returns are all loaded, at the start and later", async (t) => {
  const database = openDatabase(t);
  const early = await loadRevocations(database, () => NOW_MS);
  const targets = Array.from({ length: 4_500 }, (_, at) => `j${at}`);
  // Many have the same end: the next read goes on among those.
  await database.write(targets.map((target) => revocation(target, 1, NOW_MS + HOUR_MS)));
  await early.refresh();
  const late = await loadRevocations(database, () => NOW_MS);
  for (const revocations of [early, late]) {
    assert.deepEqual(targets.filter((jti) => revocations.has({ ...caller, jti }) !== true), []);
  }
});
