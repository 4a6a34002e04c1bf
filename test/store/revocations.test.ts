import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { countRows, makeFolder, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const grantId = newId("g", NOW_MS);
const madeAtMs = parseInt(grantId.slice(1, 10), 36);
const caller = { jti: `${grantId}0123456789abcdef`, grantId, sub: "u1", clientId: "a1" };

describe("has() tells of a token", () => {
  const table: [what: string, target: string, notBeforeMs: number, isRevoked: boolean][] = [
    ["that was revoked itself", caller.jti, madeAtMs + 1, true],
    ["whose grant was revoked", grantId, madeAtMs + 1, true],
    ["whose user was cut off after its grant", "u1", madeAtMs + 1, true],
    ["whose app was cut off after its grant", "a1", madeAtMs + 1, true],
    ["whose user was cut off from its app after its grant", "u1 a1", madeAtMs + 1, true],
    ["whose user was cut off from another app", "u1 a2", madeAtMs + 1, false],
    ["whose user was cut off in the same millisecond", "u1", madeAtMs, true],
    ["whose app was cut off in the same millisecond", "a1", madeAtMs, true],
    ["whose user was cut off before its grant", "u1", madeAtMs - 1, false],
    ["whose app was cut off before its grant", "a1", madeAtMs - 1, false],
    ["that was revoked itself while the clock was behind", caller.jti, madeAtMs - HOUR_MS, true],
    ["whose grant was revoked while the clock was behind", grantId, madeAtMs - HOUR_MS, true],
    ["another token of which was revoked", `${grantId}fedcba9876543210`, madeAtMs + 1, false],
    ["when another grant was revoked", newId("g", NOW_MS), madeAtMs + 1, false],
    ["when another user was cut off", "u2", madeAtMs + 1, false],
    ["when another app was cut off", "a2", madeAtMs + 1, false],
    ["when logins were cut off", "login", madeAtMs + 1, false],
    ["when something without a name was", "", madeAtMs + 1, false],
  ];
  for (const [what, target, notBeforeMs, isRevoked] of table) {
    test(what, async (t) => {
      const database = openDatabase(t);
      const revocations = await loadRevocations(database, () => NOW_MS);
      assert.equal(revocations.has(caller), false);
      await database.write([revocation(target, notBeforeMs, NOW_MS + HOUR_MS)]);
      await revocations.refresh();
      assert.equal(revocations.has(caller), isRevoked);
    });
  }
});

test("has() is asked without a read of the database", async (t) => {
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
  for (let round = 0; round < 100; round++) revocations.has(caller);
  assert.equal(queries, before);
});

test("loadRevocations() takes in what was stored before, as after a restart", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation(caller.jti, NOW_MS, NOW_MS + HOUR_MS)]);
  assert.equal((await loadRevocations(database, () => NOW_MS)).has(caller), true);
});

test("an end that is ahead of all clocks is not undone by earlier ones at a start", async (t) => {
  const database = openDatabase(t);
  const aheadMs = NOW_MS + 24 * HOUR_MS;
  // By a clock that was ahead; what is in force for longest is read first.
  await database.write([
    revocation("u1", madeAtMs - 2, NOW_MS + 3 * HOUR_MS),
    revocation("u1", madeAtMs - 1, NOW_MS + 2 * HOUR_MS),
    revocation("u1", aheadMs, aheadMs + HOUR_MS),
  ]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(caller), true);
  await database.write([revocation("u1", madeAtMs - 1, NOW_MS + HOUR_MS)]); // dated since
  await revocations.refresh();
  assert.equal(revocations.has(caller), false);
});

test("an end stays where one is stored later that was dated earlier", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  // As after a start: the clock to delete by is behind (base/steady_clock.ts).
  const revocations = await loadRevocations(database, () => NOW_MS - 2 * MINUTE_MS);
  // By another process, whose clock is so much behind.
  await database.write([revocation("u1", madeAtMs - 1_000, NOW_MS + HOUR_MS)]);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
});

test("refresh() takes in what another process has stored", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const [own, other] = [openDatabase(t, path), openDatabase(t, path)];
  const revocations = await loadRevocations(own, () => NOW_MS);
  await other.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  assert.equal(revocations.has(caller), false);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
});

test("refresh() misses none of those that two processes store at once", async (t) => {
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

test("refresh() reads what is new, and not the whole list again", async (t) => {
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

test("a refresh that fails after a write does not say that nothing was stored", async (t) => {
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

test("a later cut counts, and an earlier one that comes later does not take it back", async (t) => {
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

test("what has expired is forgotten, and nothing before", async (t) => {
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

test("of two revocations of one target the longer one lasts", async (t) => {
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

test("what the purge removes from the table stays in force until its time", async (t) => {
  const database = openDatabase(t);
  await database.write([revocation("u1", madeAtMs, NOW_MS + HOUR_MS)]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  await database.write([{ sql: "DELETE FROM revocations", params: [] }]);
  await database.write([revocation("u5", madeAtMs, NOW_MS + HOUR_MS)]);
  await revocations.refresh();
  assert.equal(revocations.has(caller), true);
  assert.equal(revocations.has({ ...caller, sub: "u5" }), true);
});

test("what has expired is not even read at the opening, nor later", async (t) => {
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

describe("past the limit of what is held in memory", () => {
  const LIMIT = 3;
  const NEVER_HELD = "revoked shortly";
  /** More than are held, which stay in force for longer than the one. */
  const fill = (first: number) =>
    Array.from({ length: LIMIT }, (_, at) => revocation(`j${first + at}`, 1, NOW_MS + 2 * HOUR_MS));
  const shortly = (target: string, notBeforeMs: number) =>
    revocation(target, notBeforeMs, NOW_MS + HOUR_MS);

  const table: [what: string, target: string, notBeforeMs: number, isRevoked: boolean][] = [
    ["a token that was revoked itself", caller.jti, 1, true],
    ["one whose grant was revoked", grantId, 1, true],
    ["one whose user was cut off after its grant", "u1", madeAtMs, true],
    ["one whose app was cut off after its grant", "a1", madeAtMs, true],
    ["one whose user was cut off from its app after its grant", "u1 a1", madeAtMs, true],
    ["one whose user was cut off before its grant", "u1", madeAtMs - 1, false],
    ["one whose app was cut off before its grant", "a1", madeAtMs - 1, false],
    ["one that has nothing to do with any", NEVER_HELD, madeAtMs, false],
  ];
  for (const [what, target, notBeforeMs, isRevoked] of table) {
    test(`the database is asked for ${what}, at the opening and later`, async (t) => {
      const database = openDatabase(t);
      const early = await loadRevocations(database, () => NOW_MS, LIMIT);
      await database.write([...fill(0), shortly(target, notBeforeMs)]);
      await early.refresh();
      const late = await loadRevocations(database, () => NOW_MS, LIMIT);
      for (const revocations of [early, late]) {
        assert.ok(revocations.has(caller) instanceof Promise);
        assert.equal(await revocations.has(caller), isRevoked);
      }
    });
  }

  for (const [count, isAsked] of [[100_000, false], [100_001, true]] as const) {
    test(`of ${count} the database is ${isAsked ? "asked" : "not asked"}`, async (t) => {
      const database = openDatabase(t);
      await database.write([sql`WITH RECURSIVE n (i) AS
          (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
        INSERT INTO revocations (target, notBeforeMs, untilMs)
        SELECT 'j' || i, 1, ${NOW_MS + HOUR_MS} FROM n`]);
      const revocations = await loadRevocations(database, () => NOW_MS);
      assert.equal(revocations.has(caller) instanceof Promise, isAsked);
      assert.equal(await revocations.has(caller), false);
    });
  }

  test("what is held is known without a read", async (t) => {
    const database = openDatabase(t);
    await database.write([...fill(0), shortly(NEVER_HELD, 1)]);
    const revocations = await loadRevocations(database, () => NOW_MS, LIMIT);
    assert.equal(revocations.has({ ...caller, jti: "j0" }), true);
  });

  test("a target that is held already takes no more room", async (t) => {
    const database = openDatabase(t);
    await database.write([...fill(0), ...fill(0)]);
    const revocations = await loadRevocations(database, () => NOW_MS, LIMIT);
    assert.equal(revocations.has(caller), false);
  });

  test("the database is asked no more once what was not held has expired", async (t) => {
    const database = openDatabase(t);
    let nowMs = NOW_MS;
    await database.write([...fill(0), shortly(caller.jti, 1)]);
    const revocations = await loadRevocations(database, () => nowMs, LIMIT);
    nowMs = NOW_MS + HOUR_MS;
    assert.equal(revocations.has(caller), false);
    assert.equal(revocations.has({ ...caller, jti: "j1" }), true);
  });

  test("the database is asked though all that was held has expired", async (t) => {
    const database = openDatabase(t);
    let nowMs = NOW_MS;
    const revocations = await loadRevocations(database, () => nowMs, LIMIT);
    await database.write(fill(0));
    await database.write([revocation(caller.jti, 1, NOW_MS + 9 * HOUR_MS)]);
    await revocations.refresh();
    nowMs = NOW_MS + 3 * HOUR_MS;
    await revocations.refresh();
    assert.equal(await revocations.has(caller), true);
  });

  test("the database is asked until the last that was not held has expired", async (t) => {
    const database = openDatabase(t);
    let nowMs = NOW_MS;
    const revocations = await loadRevocations(database, () => nowMs, LIMIT);
    await database.write(fill(0));
    await database.write([revocation(caller.jti, 1, NOW_MS + 9 * HOUR_MS)]);
    await database.write([shortly(NEVER_HELD, 1)]);
    await revocations.refresh();
    nowMs = NOW_MS + HOUR_MS;
    assert.equal(await revocations.has(caller), true);
  });

  test("the opening reads no more than fit", async (t) => {
    const database = openDatabase(t);
    const many = Array.from({ length: 9_000 }, (_, at) => revocation(`m${at}`, 1, NOW_MS + at + 1));
    await database.write(many);
    const { counted, found } = countRows(database);
    await loadRevocations(counted, () => NOW_MS, 3_000);
    assert.ok(found.rows <= 5_001, `${found.rows} rows`);
    assert.ok(found.most <= 2_000, `${found.most} rows at once`);
  });
});

test("more than are read at once are all taken in, at the opening and later", async (t) => {
  const database = openDatabase(t);
  const early = await loadRevocations(database, () => NOW_MS);
  const targets = Array.from({ length: 4_500 }, (_, at) => `j${at}`);
  // Many of the same end: the reading goes on within them.
  await database.write(targets.map((target) => revocation(target, 1, NOW_MS + HOUR_MS)));
  await early.refresh();
  const late = await loadRevocations(database, () => NOW_MS);
  for (const revocations of [early, late]) {
    assert.deepEqual(targets.filter((jti) => revocations.has({ ...caller, jti }) !== true), []);
  }
});
