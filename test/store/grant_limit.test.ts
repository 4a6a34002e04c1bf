import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { insertCode, redeemCode } from "../../src/store/codes.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeBareGrant } from "../../src/store/grant_end.ts";
import { endExcessGrants } from "../../src/store/grant_limit.ts";
import { insertGrant, type NewGrant } from "../../src/store/grants.ts";
import { purge } from "../../src/store/purge.ts";
import { loadRevocations, type Revocations } from "../../src/store/revocations.ts";
import { addApp, addSession, addUser, openDatabase, sampleGrant } from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";
import { NEVER } from "../helpers/never.ts";
import { sampleCode, sampleRedemption } from "./code_stage.ts";

test("a user has at most 100 grants of an app: each further one ends the oldest", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  const neighbours = [
    await addGrant(database, await addApp(database), user),
    await addGrant(database, app, await addUser(database)),
    await addGrant(database, app, null),
  ];
  const ids = await addMany(database, app, user, 100);
  assert.deepEqual(await listEnded(database), []);
  ids.push(await addGrant(database, app, user));
  ids.push(await addGrant(database, app, user));
  assert.deepEqual(await listEnded(database), ids.slice(0, 2));
  const audited = await database.query<{ target: string }>(
    sql`SELECT target FROM audit WHERE action = 'grant.limit'`,
  );
  assert.deepEqual(audited.map(({ target }) => target), [user, user]);
  assert.equal((await listEnded(database)).some((id) => neighbours.includes(id)), false);
});

test("a login whose token was revoked does not count for the limit of 100", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [oldest, second = ""] = await addMany(database, "login", user, 100);
  const noRefreshTokens = sql`UPDATE grants SET refreshUntilMs = 0`;
  await database.write([noRefreshTokens, revokeBareGrant(second, NOW_MS)]);
  await addGrant(database, "login", user);
  assert.deepEqual(await listEnded(database), [second]);
  await addGrant(database, "login", user);
  assert.deepEqual(await listEnded(database), [oldest, second]);
  const audited = await database.query<{ actor: string }>(
    sql`SELECT actor FROM audit WHERE action = 'grant.limit'`,
  );
  assert.deepEqual(audited, [{ actor: user }], "it was the user's own login");
});

test("a user has at most 500 grants in all: each further one ends the oldest", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) {
    ids.push(...await addMany(database, await addApp(database), user, 100));
  }
  assert.deepEqual(await listEnded(database), []);
  await addGrant(database, "login", user);
  await addGrant(database, "login", user);
  assert.deepEqual(await listEnded(database), ids.slice(0, 2));
});

test("a grant that the limit of 100 ends does not count for the limit of 500", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  for (let count = 0; count < 4; count++) {
    await addMany(database, await addApp(database), user, 100);
  }
  const [oldest] = await addMany(database, app, user, 100);
  await addGrant(database, app, user);
  assert.deepEqual(await listEnded(database), [oldest]);
});

test("personal tokens do not count for the limit of 500, and are not ended by it", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const personal = await addGrant(database, "personal", user);
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) {
    ids.push(...await addMany(database, await addApp(database), user, 100));
  }
  assert.deepEqual(await listEnded(database), []);
  await addGrant(database, "login", user);
  assert.deepEqual(await listEnded(database), ids.slice(0, 1));
  assert.ok(personal < (ids[0] ?? ""), "it is the oldest");
});

test("a redeemed code counts as a grant, and the ended grant is refused at once", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  const [oldest = "", next = ""] = await addMany(database, app, user, 100);
  const revocations = await loadRevocations(database, () => NOW_MS);
  const code = sampleCode(app, user);
  const hash = sha256(code.id);
  await database.write([insertCode(code, hash, await addSession(database, user), NOW_MS)]);
  const redemption = sampleRedemption(code, hash);
  assert.equal(await redeemCode(database, redemption, NOW_MS + 1, revocations), true);
  assert.deepEqual(await listEnded(database), [oldest]);
  const tokenOf = (id: string) => ({ jti: `${id}0`, grantId: id, sub: user, clientId: app });
  assert.equal(revocations.has(tokenOf(oldest)), true);
  assert.equal(revocations.has(tokenOf(next)), false);
});

test("grants of an app that acts for itself are not limited, and count for no user", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await addMany(database, app, null, 600);
  await addGrant(database, app, null);
  await addGrant(database, app, user);
  assert.deepEqual(await listEnded(database), []);
});

test("a grant that is refused ends no other", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await addMany(database, app, user, 100);
  const refused = sampleGrant(app, user, { scopes: ["none"] });
  assert.equal(await insertGrant(database, refused), false);
  assert.deepEqual(await listEnded(database), []);
});

test("a grant is stored though the oldest cannot be ended; the next one ends two", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  const ids = await addMany(database, app, user, 100);
  const isEnd = ({ sql }: Sql) => sql.startsWith("UPDATE grants SET revokedAtMs");
  const full: Database = {
    ...database,
    write: (batch) =>
      batch.some(isEnd) ? Promise.reject(new UnavailableError("full")) : database.write(batch),
  };
  assert.equal(await insertGrant(full, sampleGrant(app, user)), true);
  assert.deepEqual(await listEnded(database), []);
  await addGrant(database, app, user);
  assert.deepEqual(await listEnded(database), ids.slice(0, 2));
});

test("insertGrant() throws an error that is not the database's", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await addMany(database, app, user, 100);
  const wrong: Database = {
    ...database,
    write: (batch) =>
      batch.length > 1 && batch[1]?.sql.startsWith("UPDATE grants SET revokedAtMs")
        ? Promise.reject(new TypeError("wrong")) : database.write(batch),
  };
  await assert.rejects(insertGrant(wrong, sampleGrant(app, user)), { message: "wrong" });
});

test("endExcessGrants() waits until the ended grants are refused", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await addMany(database, app, user, 101);
  let isRefused = false;
  const refresh = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    isRefused = true;
  };
  const revocations = { refresh } as unknown as Revocations;
  await endExcessGrants(database, user, app, NOW_MS, revocations);
  assert.equal(isRefused, true);
});

test("the end of a console grant by the limit is not audited", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const ids = await addMany(database, "console", user, 100);
  await addGrant(database, "console", user);
  assert.deepEqual(await listEnded(database), ids.slice(0, 1));
  assert.deepEqual(await database.query(sql`SELECT 1 FROM audit`), []);
});

test("of very many grants over the limit 500 to 1,000 end at once, the newest first", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  const ids = await addMany(database, app, user, 2_000);
  await addGrant(database, app, user);
  const ended = await listEnded(database);
  assert.ok(ended.length >= 500 && ended.length <= 1_000, String(ended.length));
  assert.equal(ended.at(-1), ids[2_000 - 100]);
});

test("the purge keeps an app's 500 newest own grants once access tokens expired", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  const other = await addApp(database);
  const untilMs = { refreshUntilMs: NOW_MS + 50 * HOUR_MS, accessUntilMs: NOW_MS + HOUR_MS };
  const longer = { ...untilMs, accessUntilMs: NOW_MS + 3 * HOUR_MS };
  const alive = await addGrant(database, app, null, longer);
  const old: string[] = [];
  for (let count = 0; count < 1_100; count++) {
    old.push(sampleGrant(app, null, untilMs).id);
  }
  await database.write(old.map((id) =>
    sql`INSERT INTO grants (id, app, user, type, scopes, refresh, refreshUntilMs, accessUntilMs)
       VALUES (${id}, ${app}, NULL, 'client_credentials', '["consumer"]', x'00',
         ${untilMs.refreshUntilMs}, ${untilMs.accessUntilMs})`
  ));
  const kept = [
    alive,
    await addGrant(database, app, user, untilMs),
    await addGrant(database, other, null, untilMs),
  ];
  const run = (nowMs: number) =>
    purge(database, { eventsMs: 1, auditMs: 1 }, nowMs, NEVER);
  await run(NOW_MS + HOUR_MS - 1); // while the access tokens live
  assert.equal((await listAll(database)).length, 1_103);
  await run(NOW_MS + HOUR_MS);
  const left = new Set(await listAll(database));
  assert.equal(left.size, 503);
  assert.equal([...kept, ...old.slice(-500)].every((id) => left.has(id)), true);
});

async function addGrant(
  database: Database,
  app: string,
  user: string | null,
  more: Partial<NewGrant> = {},
): Promise<string> {
  const grant = sampleGrant(app, user, more);
  assert.equal(await insertGrant(database, grant), true);
  return grant.id;
}

/** Stores grants without looking at the limit, as an older version did. */
async function addMany(
  database: Database,
  app: string,
  user: string | null,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId("g", NOW_MS));
  await database.write(ids.map((id) =>
    sql`INSERT INTO grants (id, app, user, type, scopes, refreshUntilMs, accessUntilMs)
       VALUES (${id}, ${app}, ${user}, 'password', '["consumer"]', ${NOW_MS + HOUR_MS},
         ${NOW_MS + HOUR_MS})`
  ));
  return ids;
}

async function listEnded(database: Database): Promise<string[]> {
  const query = sql`SELECT id FROM grants WHERE revokedAtMs IS NOT NULL ORDER BY id`;
  return (await database.query<{ id: string }>(query)).map(({ id }) => id);
}

async function listAll(database: Database): Promise<string[]> {
  return (await database.query<{ id: string }>(sql`SELECT id FROM grants ORDER BY id`))
    .map(({ id }) => id);
}
