import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { countRows, openDatabase } from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";
import { numbers } from "../helpers/numbers.ts";
import { caller, grantId, madeAtMs } from "./revocations_stage.ts";

describe("past the limit of revocations in memory", () => {
  const LIMIT = 3;
  const NOT_IN_MEMORY = "revoked shortly";
  /** As many as fit into memory, which stay in force for longer than the short-lived one. */
  const fill = (first: number) =>
    Array.from({ length: LIMIT }, (_, at) => revocation(`j${first + at}`, 1, NOW_MS + 2 * HOUR_MS));
  const shortLived = (target: string, notBeforeMs: number) =>
    revocation(target, notBeforeMs, NOW_MS + HOUR_MS);

  const table: [what: string, target: string, notBeforeMs: number, isRevoked: boolean][] = [
    ["a token that was revoked itself", caller.jti, 1, true],
    ["a token whose grant was revoked", grantId, 1, true],
    ["a token whose user's tokens were revoked later", "u1", madeAtMs, true],
    ["a token whose app's tokens were revoked later", "a1", madeAtMs, true],
    ["a token whose user withdrew the app's consent later", "u1 a1", madeAtMs, true],
    ["a token whose user's tokens were revoked earlier", "u1", madeAtMs - 1, false],
    ["a token whose app's tokens were revoked earlier", "a1", madeAtMs - 1, false],
    ["a token that no revocation concerns", NOT_IN_MEMORY, madeAtMs, false],
  ];
  for (const [what, target, notBeforeMs, isRevoked] of table) {
    test(`the database is asked about ${what}, at the start and later`, async (t) => {
      const database = openDatabase(t);
      const early = await loadRevocations(database, () => NOW_MS, LIMIT);
      await database.write([...fill(0), shortLived(target, notBeforeMs)]);
      await early.refresh();
      const late = await loadRevocations(database, () => NOW_MS, LIMIT);
      for (const revocations of [early, late]) {
        assert.ok(revocations.has(caller) instanceof Promise);
        assert.equal(await revocations.has(caller), isRevoked);
      }
    });
  }

  for (const [count, isAsked] of [[100_000, false], [100_001, true]] as const) {
    test(`with ${count} of them the database is ${isAsked ? "asked" : "not asked"}`, async (t) => {
      const database = openDatabase(t);
      await database.write([sql`${numbers(count)}
        INSERT INTO revocations (target, notBeforeMs, untilMs)
        SELECT 'j' || i, 1, ${NOW_MS + HOUR_MS} FROM n`]);
      const revocations = await loadRevocations(database, () => NOW_MS);
      assert.equal(revocations.has(caller) instanceof Promise, isAsked);
      assert.equal(await revocations.has(caller), false);
    });
  }

  test("a revocation in memory is found without a read", async (t) => {
    const database = openDatabase(t);
    await database.write([...fill(0), shortLived(NOT_IN_MEMORY, 1)]);
    const revocations = await loadRevocations(database, () => NOW_MS, LIMIT);
    assert.equal(revocations.has({ ...caller, jti: "j0" }), true);
  });

  test("a second revocation of a target in memory takes no more space", async (t) => {
    const database = openDatabase(t);
    await database.write([...fill(0), ...fill(0)]);
    const revocations = await loadRevocations(database, () => NOW_MS, LIMIT);
    assert.equal(revocations.has(caller), false);
  });

  test("the database is no longer asked once all not in memory have expired", async (t) => {
    const database = openDatabase(t);
    let nowMs = NOW_MS;
    await database.write([...fill(0), shortLived(caller.jti, 1)]);
    const revocations = await loadRevocations(database, () => nowMs, LIMIT);
    nowMs = NOW_MS + HOUR_MS;
    assert.equal(revocations.has(caller), false);
    assert.equal(revocations.has({ ...caller, jti: "j1" }), true);
  });

  test("the database is asked though all in memory have expired", async (t) => {
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

  test("the database is asked until the last one not in memory has expired", async (t) => {
    const database = openDatabase(t);
    let nowMs = NOW_MS;
    const revocations = await loadRevocations(database, () => nowMs, LIMIT);
    await database.write(fill(0));
    await database.write([revocation(caller.jti, 1, NOW_MS + 9 * HOUR_MS)]);
    await database.write([shortLived(NOT_IN_MEMORY, 1)]);
    await revocations.refresh();
    nowMs = NOW_MS + HOUR_MS;
    assert.equal(await revocations.has(caller), true);
  });

  test("loadRevocations() reads at most one step more than fits", async (t) => {
    const database = openDatabase(t);
    const many = Array.from({ length: 9_000 }, (_, at) => revocation(`m${at}`, 1, NOW_MS + at + 1));
    await database.write(many);
    const { counted, found } = countRows(database);
    await loadRevocations(counted, () => NOW_MS, 3_000);
    assert.ok(found.rows <= 5_001, `${found.rows} rows`);
    assert.ok(found.most <= 2_000, `${found.most} rows at once`);
  });
});
