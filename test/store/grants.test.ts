import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { revokeTokensOfApp, deleteApp } from "../../src/store/apps.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { NEWEST } from "../../src/database/rows.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import {
  findGrant,
  findRefreshToken,
  insertGrant,
  listGrants,
  type NewGrant,
  rotateRefreshToken,
} from "../../src/store/grants.ts";
import { revokeTokensOfUser, deleteUser } from "../../src/store/users.ts";
import {
  addApp,
  addUser,
  changeUser,
  makeFolder,
  openDatabase,
  openWithOthers,
  sampleGrant,
} from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
/** Hashes of the refresh token of a sample grant, and of the next one. */
const [FIRST, SECOND] = [sha256("first"), sha256("second")];

test("a grant is found as it was stored", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { refresh: _, ...rest } = grant;
  assert.deepEqual({ ...await findGrant(database, grant.id) }, { ...rest, revokedAtMs: null });
  assert.equal(await findGrant(database, newId("g", NOW_MS)), undefined);
});

test("an app's grant for itself has no user, and a login's grant no stored app", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const own = sampleGrant(app, null, { type: "client_credentials" });
  const login = sampleGrant("login", user, { type: "login" });
  assert.equal(await insertGrant(database, own), true);
  assert.equal(await insertGrant(database, login), true);
  assert.equal((await findGrant(database, own.id))?.user, null);
  assert.equal((await findGrant(database, login.id))?.app, "login");
});

describe("no grant is stored and no refresh token is rotated if, at the commit,", () => {
  type Change = (database: Database, grant: NewGrant) => Promise<unknown>;
  const table: [what: string, change: Change][] = [
    ["the user was disabled", (database, { user }) =>
      changeUser(database, user ?? "", { status: "disabled" })],
    ["the user was deleted", (database, { user }) => database.write([deleteUser(user ?? "")])],
    ["the user's tokens were revoked", (database, { user, id }) =>
      database.write(revokeTokensOfUser(user ?? "", timeOf(id), 1))],
    ["the user has lost a scope", (database, { user }) =>
      changeUser(database, user ?? "", { scopes: ["orders"] })],
    ["the app was disabled", (database, { app }) =>
      database.write([sql`UPDATE apps SET status = 'disabled' WHERE id = ${app}`])],
    ["the app was deleted", (database, { app }) => database.write([deleteApp(app)])],
    ["the app's tokens were revoked", (database, { app, id }) =>
      database.write(revokeTokensOfApp(app, timeOf(id), 1))],
    ["the app has lost a scope", (database, { app }) => database.write([
      sql`UPDATE apps SET scopes = '["orders","consumerx"]' WHERE id = ${app}`,
    ])],
  ];
  for (const [what, change] of table) {
    test(what, async (t) => {
      const { database, grant } = await openWithGrant(t);
      await change(database, grant);
      assert.equal(await rotate(database, grant.id, FIRST, SECOND), false);
      assert.equal((await find(database, grant.id, FIRST))?.state, "current");
      assert.equal(await find(database, grant.id, SECOND), undefined);
      const late = { ...grant, id: grant.id.slice(0, -1) + (grant.id.endsWith("0") ? "1" : "0") };
      assert.equal(await insertGrant(database, late), false);
      assert.equal(await findGrant(database, late.id), undefined);
    });
  }
});

test("a grant decided before its user's tokens were revoked is refused", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, NOW_MS, HOUR_MS));
  const later = newId("g", NOW_MS + HOUR_MS);
  const grant = sampleGrant(app, user, { id: later });
  assert.equal(await insertGrant(database, { ...grant, decidedAtMs: NOW_MS }), false);
  assert.equal(await insertGrant(database, { ...grant, decidedAtMs: NOW_MS + 1 }), true);
});

test("an audit entry is stored only together with its grant", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const entry = { actor: user, action: "user.login", target: user, address: "192.0.2.1" };
  assert.equal(await insertGrant(database, sampleGrant(app, user), entry), true);
  assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
  const bad = sampleGrant(app, user, { scopes: ["none"] });
  assert.equal(await insertGrant(database, bad, entry), false);
  assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
});

describe("simultaneous grants of apps for themselves", () => {
  /** Grants of two apps, of which the second may not have the scope, and the writes they cost. */
  async function insertTogether(t: TestContext, fail?: (call: "query" | "write") => void) {
    const real = openDatabase(t);
    const [app, other] = [await addApp(real), await addApp(real, { scopes: ["orders"] })];
    const grants = [app, other, app, app].map((id) =>
      sampleGrant(id, null, { refresh: id === other ? undefined : FIRST })
    );
    let writes = 0;
    const database: Database = {
      ...real,
      async query<Row>(select: Sql) {
        fail?.("query");
        return real.query<Row>(select);
      },
      async write(batch) {
        writes++;
        const changes = await real.write(batch);
        fail?.("write");
        return changes;
      },
    };
    const results = await Promise.allSettled(grants.map((grant) => insertGrant(database, grant)));
    return { real, grants, results, writes };
  }

  test("are stored in one write, in which a refused one does not fail the others", async (t) => {
    const { real, grants, results, writes } = await insertTogether(t);
    assert.equal(writes, 1);
    const stored = results.map((each) => each.status === "fulfilled" && each.value);
    assert.deepEqual(stored, [true, false, true, true]);
    for (const [at, { refresh: _, ...grant }] of grants.entries()) {
      const found = await findGrant(real, grant.id);
      assert.deepEqual(found && { ...found }, stored[at] ? { ...grant, revokedAtMs: null }
        : undefined);
      assert.equal((await find(real, grant.id, FIRST))?.state, stored[at] ? "current" : undefined);
    }
  });

  for (const failing of ["query", "write"] as const) {
    test(`all have an unknown outcome if the ${failing} fails`, async (t) => {
      const { results } = await insertTogether(t, (call) => {
        if (call !== failing) return;
        throw call === "query" ? new UnavailableError("down") : new OutcomeUnknownError("down");
      });
      const names = results.map((each) => each.status === "rejected" && each.reason.name);
      assert.deepEqual(names, Array(4).fill("OutcomeUnknownError"));
    });
  }

  test("are stored with their audit entries", async (t) => {
    const database = openDatabase(t);
    const app = await addApp(database);
    const entry = { actor: app, action: "test", target: app, address: null };
    const grants = [sampleGrant(app, null), sampleGrant(app, null, { scopes: ["none"] })];
    const results = await Promise.all(grants.map((grant) => insertGrant(database, grant, entry)));
    assert.deepEqual(results, [true, false]);
    assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
  });
});

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

test("listGrants() lists by user, by app, by both, or all, newest first", async (t) => {
  const database = openDatabase(t);
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  const [user, otherUser] = [await addUser(database), await addUser(database)];
  const made = [
    sampleGrant(app, user),
    sampleGrant(otherApp, user),
    sampleGrant(app, otherUser),
    sampleGrant(app, null),
  ];
  for (const grant of made) assert.ok(await insertGrant(database, grant));
  const [first, second, third, fourth] = made.map(({ id }) => id);
  const list = async (filter: { user?: string; app?: string }) =>
    (await listGrants(database, { ...filter, limit: 9 }, NOW_MS)).items
      .map(({ id }) => id);
  assert.deepEqual(await list({}), [fourth, third, second, first]);
  assert.deepEqual(await list({ user }), [second, first]);
  assert.deepEqual(await list({ app }), [fourth, third, first]);
  assert.deepEqual(await list({ user, app }), [first]);
  assert.deepEqual(await list({ user: "u0" }), []);
  const page = await listGrants(database, { limit: 3 }, NOW_MS);
  assert.equal(page.items.length, 3);
  const rest = await listGrants(database, { limit: 3, cursor: page.next ?? "" }, NOW_MS);
  assert.deepEqual(rest.items.map(({ id }) => id), [first]);
});

test("listGrants() lists a user's ended grants in order among the others", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { app } = grant;
  const user = grant.user ?? "";
  const made = [grant, ...Array.from({ length: 6 }, () => sampleGrant(app, user))];
  for (const more of made.slice(1)) assert.ok(await insertGrant(database, more));
  for (const at of [0, 2, 3, 5]) {
    await database.write(revokeGrant(made[at]?.id ?? "", NOW_MS + 1));
  }
  for (const filter of [{ user }, { user, app }]) {
    const found: string[] = [];
    for (let cursor: string | undefined = NEWEST; cursor !== undefined;) {
      const given = { ...filter, limit: 2, cursor };
      const { items, next } = await listGrants(database, given, NOW_MS + 1);
      found.push(...items.map(({ id, status }) => `${id} ${status}`));
      cursor = next;
    }
    const states = ["revoked", "active", "revoked", "revoked", "active", "revoked", "active"];
    assert.deepEqual(found, made.map(({ id }, at) => `${id} ${states[at]}`).toReversed());
  }
});

test("listGrants() gives the status of each grant", async (t) => {
  const ends = { accessUntilMs: NOW_MS + HOUR_MS, refreshUntilMs: NOW_MS + 9 * HOUR_MS };
  const { database, grant } = await openWithGrant(t, ends);
  const revoked = sampleGrant(grant.app, await addUser(database));
  const gone = sampleGrant(grant.app, await addUser(database));
  const login = sampleGrant("login", grant.user, { type: "login" });
  for (const more of [revoked, gone, login]) assert.ok(await insertGrant(database, more));
  await database.write(revokeTokensOfUser(revoked.user ?? "", timeOf(revoked.id), HOUR_MS));
  await database.write([deleteUser(gone.user ?? "")]);
  const statuses = async (nowMs: number) =>
    (await listGrants(database, { limit: 9 }, nowMs)).items
      .map(({ status }) => status);
  assert.deepEqual(await statuses(NOW_MS + 1), ["active", "revoked", "revoked", "active"]);
  assert.equal((await statuses(ends.refreshUntilMs - 1)).at(-1), "active");
  const later = await statuses(NOW_MS + 99 * HOUR_MS);
  assert.deepEqual(later, ["expired", "revoked", "revoked", "expired"]);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  assert.deepEqual(await statuses(NOW_MS + 1), ["active", "revoked", "revoked", "revoked"]);
});

async function openWithGrant(t: TestContext, more: Partial<NewGrant> = {}) {
  const database = await openWithOthers(t);
  const grant = sampleGrant(await addApp(database), await addUser(database), more);
  assert.equal(await insertGrant(database, grant), true);
  return { database, grant };
}

interface Presenting {
  readonly state?: "current" | "previous";
  readonly isGenuine?: boolean;
  readonly nowMs?: number;
}

function find(
  database: Database,
  grantId: string,
  hash: Uint8Array,
  { isGenuine = false, nowMs = NOW_MS + 5 }: Presenting = {},
) {
  return findRefreshToken(database, handleOf(grantId, hash, isGenuine), nowMs);
}

function handleOf(grantId: string, hash: Uint8Array, isGenuine: boolean) {
  return { grantId, hash, isGenuine: isGenuine ? () => true : undefined };
}

async function rotate(
  database: Database,
  grantId: string,
  oldHash: Uint8Array,
  newHash: Uint8Array,
  { state = "current", isGenuine = false, nowMs = NOW_MS + 5 }: Presenting = {},
): Promise<boolean> {
  const found = await find(database, grantId, oldHash, { isGenuine: true, nowMs });
  return rotateRefreshToken(database, {
    old: handleOf(grantId, oldHash, isGenuine),
    state,
    head: found?.head ?? null,
    newHash,
    scopes: ["consumer"],
    refreshUntilMs: NOW_MS + 30 * HOUR_MS,
    accessUntilMs: NOW_MS + 2 * HOUR_MS,
  }, nowMs);
}

async function countUsed(database: Database, grantId: string): Promise<number> {
  const query = sql`SELECT 1 FROM used_refresh_tokens WHERE grantId = ${grantId}`;
  return (await database.query(query)).length;
}

/** The time within an id: nine digits of base 36 after the letter. */
function timeOf(id: string): number {
  return parseInt(id.slice(1, 10), 36);
}
