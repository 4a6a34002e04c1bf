import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { findGrant, findRefreshToken, insertGrant } from "../../src/store/grants.ts";
import { addApp, addUser, makeFolder, openDatabase, sampleGrant } from "../helpers/database.ts";
import {
  find,
  FIRST,
  HOUR_MS,
  NOW_MS,
  openWithGrant,
  rotate,
  SECOND,
} from "../helpers/grant_stage.ts";

test("a refresh token is found by its grant's id and its hash, and by nothing else", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const found = await find(database, grant.id, FIRST);
  assert.equal(found?.state, "current");
  assert.equal(found.grant.id, grant.id);
  assert.deepEqual(found.grant.scopes, grant.scopes);
  assert.equal(await find(database, grant.id, SECOND), undefined);
  assert.equal(await find(database, newId("g", NOW_MS), FIRST), undefined);
});

test("no hash, not even an empty one, finds a refresh token of a grant without one", async (t) => {
  const database = openDatabase(t);
  const [app, user] = [await addApp(database), await addUser(database)];
  const grant = sampleGrant(app, user, { refresh: undefined });
  await insertGrant(database, grant);
  assert.equal(await find(database, grant.id, FIRST), undefined);
  const madeUp = { grantId: grant.id, hash: FIRST, isGenuine: () => false };
  assert.equal(await findRefreshToken(database, madeUp, NOW_MS), undefined);
  assert.equal(await find(database, grant.id, new Uint8Array()), undefined);
  assert.equal(await rotate(database, grant.id, new Uint8Array(), SECOND), false);
});

test("a rotation makes the new token current, and keeps the old one as previous", async (t) => {
  const { database, grant } = await openWithGrant(t);
  assert.equal(await rotate(database, grant.id, FIRST, SECOND), true);
  assert.equal((await find(database, grant.id, FIRST))?.state, "previous");
  assert.equal((await find(database, grant.id, SECOND))?.state, "current");
  assert.equal(await rotate(database, grant.id, FIRST, sha256("third")), false);
  assert.equal((await find(database, grant.id, SECOND))?.state, "current");
});

describe("replacing refresh tokens whose response was lost", () => {
  const THIRD = sha256("third");

  test("makes the previous token valid once more, and its successor invalid", async (t) => {
    const { database, grant } = await openWithGrant(t);
    await rotate(database, grant.id, FIRST, SECOND);
    assert.equal(await rotate(database, grant.id, FIRST, THIRD, { state: "previous" }), true);
    const states = [FIRST, SECOND, THIRD].map((hash) =>
      find(database, grant.id, hash, { isGenuine: true })
    );
    assert.deepEqual(
      (await Promise.all(states)).map((found) => found?.state),
      ["used", "used", "current"],
    );
    assert.equal(await rotate(database, grant.id, FIRST, SECOND, { state: "previous" }), false);
  });

  test("is possible within 30 seconds of the exchange", async (t) => {
    const { database, grant } = await openWithGrant(t);
    await rotate(database, grant.id, FIRST, SECOND, { nowMs: NOW_MS });
    const stateAt = async (nowMs: number) =>
      (await find(database, grant.id, FIRST, { nowMs, isGenuine: true }))?.state;
    assert.equal(await stateAt(NOW_MS + 29_999), "previous");
    assert.equal(await stateAt(NOW_MS + 30_000), "used");
    assert.equal(await stateAt(NOW_MS - 29_999), "previous"); // another machine's clock
    assert.equal(await stateAt(NOW_MS - 30_000), "used"); // the clock was set back
  });

  test("is refused once the successor has been exchanged", async (t) => {
    const { database, grant } = await openWithGrant(t);
    await rotate(database, grant.id, FIRST, SECOND);
    await rotate(database, grant.id, SECOND, THIRD);
    const found = await find(database, grant.id, FIRST, { isGenuine: true });
    assert.equal(found?.state, "used");
    const rotated = await rotate(database, grant.id, FIRST, sha256("x"), { state: "previous" });
    assert.equal(rotated, false);
  });

  test("succeeds for exactly one of many simultaneous requests", async (t) => {
    const { database, grant } = await openWithGrant(t);
    await rotate(database, grant.id, FIRST, SECOND);
    const results = await Promise.all(Array.from({ length: 8 }, (_, at) =>
      rotate(database, grant.id, FIRST, sha256(`next ${at}`), { state: "previous" })
    ));
    assert.equal(results.filter((isWinner) => isWinner).length, 1);
  });
});

test("a genuine refresh token is known as used without a stored row", async (t) => {
  const { database, grant } = await openWithGrant(t);
  for (let at = 0; at < 5; at++) {
    const oldHash = at === 0 ? FIRST : sha256(`token ${at}`);
    const more = { isGenuine: true };
    assert.equal(await rotate(database, grant.id, oldHash, sha256(`token ${at + 1}`), more), true);
  }
  assert.equal(await countUsed(database, grant.id), 0);
  assert.equal((await find(database, grant.id, FIRST, { isGenuine: true }))?.state, "used");
  assert.equal(await find(database, grant.id, FIRST), undefined);
});

test("a refresh token of an older version is stored as used when exchanged", async (t) => {
  const { database, grant } = await openWithGrant(t);
  await rotate(database, grant.id, FIRST, SECOND);
  await rotate(database, grant.id, SECOND, sha256("third"), { isGenuine: true });
  assert.equal((await find(database, grant.id, FIRST))?.state, "used");
  assert.equal(await countUsed(database, grant.id), 1);
  // A made-up token is unknown, and so is this one for another grant: reuse would end that.
  assert.equal(await find(database, grant.id, sha256("made up")), undefined);
  const other = sampleGrant(grant.app, grant.user, { refresh: sha256("other") });
  await insertGrant(database, other);
  assert.equal(await find(database, other.id, FIRST), undefined);
});

test("a rotation moves refreshUntilMs, and never moves accessUntilMs back", async (t) => {
  const { database, grant } = await openWithGrant(t, { accessUntilMs: NOW_MS + 5 * HOUR_MS });
  await rotate(database, grant.id, FIRST, SECOND);
  const found = await findGrant(database, grant.id);
  assert.equal(found?.refreshUntilMs, NOW_MS + 30 * HOUR_MS);
  assert.equal(found?.accessUntilMs, NOW_MS + 5 * HOUR_MS);
});

test("a refresh token that has expired is not rotated", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const rotateAt = (nowMs: number) => rotate(database, grant.id, FIRST, SECOND, { nowMs });
  assert.equal(await rotateAt(grant.refreshUntilMs), false);
  assert.equal(await rotateAt(grant.refreshUntilMs - 1), true);
});

test("a refresh token of a revoked grant is not rotated", async (t) => {
  const { database, grant } = await openWithGrant(t);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  assert.equal(await rotate(database, grant.id, FIRST, SECOND), false);
});

test("of many rotations at once in two processes exactly one succeeds", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const [one] = databases;
  assert.ok(one);
  const app = await addApp(one);
  const user = await addUser(one);
  for (let round = 0; round < 10; round++) {
    const grant = sampleGrant(app, user);
    await insertGrant(one, grant);
    const results: boolean[] = await Promise.all(Array.from({ length: 8 }, (_, at) =>
      rotate(databases[at % 2] ?? one, grant.id, FIRST, sha256(`next ${at}`))
    ));
    assert.equal(results.filter((isWinner) => isWinner).length, 1);
    const winner = sha256(`next ${results.indexOf(true)}`);
    assert.equal((await find(one, grant.id, winner))?.state, "current");
    assert.equal(await countUsed(one, grant.id), 1);
  }
});

describe("a rotation whose response was lost", () => {
  /** Rotates by a write of that kind, after which the database can be read, or not. */
  async function rotateBy(
    t: TestContext,
    write: (real: Database, ...batch: Parameters<Database["write"]>) => Promise<number[]>,
    canBeRead = true,
  ) {
    const { database: real, grant } = await openWithGrant(t);
    let isDown = false;
    const database: Database = {
      ...real,
      write(batch) {
        isDown = !canBeRead;
        return write(real, batch);
      },
      query: (select) => isDown ? Promise.reject(new UnavailableError("down")) : real.query(select),
    };
    const rotated = rotate(database, grant.id, FIRST, SECOND);
    const [outcome] = await Promise.allSettled([rotated]);
    return { outcome, state: (await find(real, grant.id, SECOND))?.state };
  }
  const lost = new OutcomeUnknownError("lost");

  test("succeeds if its new token is stored", async (t) => {
    const { outcome, state } = await rotateBy(t, async (real, batch) => {
      await real.write(batch);
      throw lost;
    });
    assert.deepEqual([outcome, state], [{ status: "fulfilled", value: true }, "current"]);
  });

  test("succeeds if its write was sent twice", async (t) => {
    const { outcome, state } = await rotateBy(t, async (real, batch) => {
      await real.write(batch);
      return await real.write(batch);
    });
    assert.deepEqual([outcome, state], [{ status: "fulfilled", value: true }, "current"]);
  });

  test("fails with the write's error if its new token is not stored", async (t) => {
    const { outcome, state } = await rotateBy(t, () => Promise.reject(lost));
    assert.deepEqual([outcome, state], [{ status: "rejected", reason: lost }, undefined]);
  });

  test("fails with the write's error if the database cannot be read", async (t) => {
    const { outcome } = await rotateBy(t, () => Promise.reject(lost), false);
    assert.deepEqual(outcome, { status: "rejected", reason: lost });
  });
});

test("a rotation and a revocation at the same time leave no valid refresh token", async (t) => {
  const { database, grant } = await openWithGrant(t);
  await Promise.all([
    rotate(database, grant.id, FIRST, SECOND),
    database.write(revokeGrant(grant.id, NOW_MS + 1)),
  ]);
  assert.equal(await rotate(database, grant.id, FIRST, sha256("x")), false);
  assert.equal(await rotate(database, grant.id, SECOND, sha256("y")), false);
});

async function countUsed(database: Database, grantId: string): Promise<number> {
  const query = sql`SELECT 1 FROM used_refresh_tokens WHERE grantId = ${grantId}`;
  return (await database.query(query)).length;
}
