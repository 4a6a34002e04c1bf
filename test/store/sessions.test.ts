import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { ConflictError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { insertPersonalToken } from "../../src/store/personal_tokens.ts";
import {
  deleteSession,
  endSessionsOf,
  findSession,
  hasSession,
  insertSession,
  isLive,
  listSessions,
  sessionId,
} from "../../src/store/sessions.ts";
import { revokeTokensOfUser, deleteUser } from "../../src/store/users.ts";
import { addUser, changeUser, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const UNTIL_MS = NOW_MS + 12 * 3_600_000;
const HASH = sha256("cookie");

test("a session names its user until it expires", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS)]);
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, user);
  assert.equal((await findSession(database, HASH, UNTIL_MS - 1))?.user, user);
  assert.equal((await findSession(database, HASH, UNTIL_MS))?.user, undefined);
});

test("the first 200 characters of a browser's User-Agent are stored", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  for (const length of [200, 201, 16_000]) {
    const agent = "x".repeat(length);
    await database.write([insertSession(sha256(agent), user, NOW_MS, UNTIL_MS, { agent })]);
  }
  const kept = await listSessions(database, user, NOW_MS);
  assert.deepEqual(kept.map(({ agent }) => agent?.length), [200, 200, 200]);
});

test("another cookie finds no session", async (t) => {
  const database = openDatabase(t);
  await database.write([insertSession(HASH, await addUser(database), NOW_MS, UNTIL_MS)]);
  assert.equal((await findSession(database, sha256("Cookie"), NOW_MS))?.user, undefined);
  assert.equal((await findSession(database, new Uint8Array(), NOW_MS))?.user, undefined);
});

test("deleteSession() ends one session alone", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write([
    insertSession(HASH, user, NOW_MS, UNTIL_MS),
    insertSession(sha256("other"), user, NOW_MS, UNTIL_MS),
  ]);
  assert.deepEqual(await database.write([deleteSession(HASH)]), [1]);
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, undefined);
  assert.equal((await findSession(database, sha256("other"), NOW_MS))?.user, user);
  assert.deepEqual(await database.write([deleteSession(HASH)]), [0]);
});

test("endSessionsOf() ends all sessions of a user but one, and of nobody else", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const hashes = ["here", "there", "elsewhere"].map(sha256);
  const owners = [user, user, other];
  await database.write(hashes.map((hash, at) =>
    insertSession(hash, owners[at] ?? "", NOW_MS, UNTIL_MS)));
  const spared = sessionId(sha256("here"));
  const [ended] = await database.write(endSessionsOf(user, NOW_MS, { spared }));
  assert.equal(ended, 1);
  const found = await Promise.all(hashes.map((hash) => findSession(database, hash, NOW_MS)));
  assert.deepEqual(found.map((session) => session?.user), [user, undefined, other]);
});

test("no personal token is stored for a session that has ended", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const make = () => {
    const grant = {
      id: newId("g", NOW_MS), app: "personal", user, type: "personal", name: "n", scopes: [],
      refreshUntilMs: 0, accessUntilMs: UNTIL_MS, revokedAtMs: null, lastUsedAtMs: null,
      status: "active",
    } as const;
    const isIn = isLive(HASH, NOW_MS);
    return insertPersonalToken(grant, user, sha256(grant.id), isIn, NOW_MS);
  };
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS)]);
  assert.deepEqual(await database.write([make(), deleteSession(HASH), make()]), [1, 1, 0]);
});

test("a session is invalid while its user is disabled", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const set = (status: "active" | "disabled") =>
    changeUser(database, user, { status });
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS)]);
  await set("disabled");
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, undefined);
  await set("active");
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, user);
});

test("hasSession() finds a session begun within the given time, before or after now", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS)]);
  const has = (given: string, nowMs: number) => hasSession(database, given, nowMs, 5);
  assert.equal(await hasSession(database, user, UNTIL_MS - 1), true);
  const lately = [-6, -5, 0, 5, 6].map((ms) => has(user, NOW_MS + ms));
  assert.deepEqual(await Promise.all(lately), [false, true, true, true, false]);
  assert.equal(await has(other, NOW_MS), false);
});

test("a session of a deleted user is invalid", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS), deleteUser(user)]);
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, undefined);
});

test("a session begun before its user's revocation is invalid, though stored later", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, NOW_MS, 1));
  await database.write([
    insertSession(HASH, user, NOW_MS, UNTIL_MS),
    insertSession(sha256("later"), user, NOW_MS + 1, UNTIL_MS),
  ]);
  assert.equal((await findSession(database, HASH, NOW_MS))?.user, undefined);
  assert.equal((await findSession(database, sha256("later"), NOW_MS + 1))?.user, user);
});

test("a cookie's value is stored as a hash of 32 bytes, once", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write([insertSession(HASH, user, NOW_MS, UNTIL_MS)]);
  const rows = await database.query<{ hash: Uint8Array }>(sql`SELECT hash FROM sessions`);
  assert.equal(rows[0]?.hash.length, 32);
  await assert.rejects(
    database.write([insertSession(HASH, "u-other", NOW_MS, UNTIL_MS)]),
    ConflictError,
  );
});
