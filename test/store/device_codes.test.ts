import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { DEVICE_CODE_MS } from "../../src/oauth/device_code.ts";
import { type Code, findCode, hasCode } from "../../src/store/codes.ts";
import {
  decideDeviceCode,
  DENIED,
  findDeviceCode,
  insertDeviceCode,
} from "../../src/store/device_codes.ts";
import { purge } from "../../src/store/purge.ts";
import { deleteSession } from "../../src/store/sessions.ts";
import {
  addApp,
  addSession,
  addUser,
  changeUser,
  makeFolder,
  openDatabase,
  openWithOthers,
} from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const UNTIL_MS = NOW_MS + DEVICE_CODE_MS;
const [HASH, USER_CODE] = [sha256("device"), sha256("BCDF-GHJK")];
const MOST_OF_APP = 5_000;

const insert = (database: Database, app: string, text: string, nowMs = NOW_MS) =>
  insertDeviceCode(
    database,
    { hash: sha256(text), app, scopes: [], untilMs: nowMs + DEVICE_CODE_MS },
    sha256(`${text} user`),
    nowMs,
  );

async function openWithDevice(t: TestContext, opened?: Database) {
  const database = opened ?? openDatabase(t);
  const [app, user] = [await addApp(database), await addUser(database)];
  const session = await addSession(database, user);
  const device = { hash: HASH, app, scopes: ["orders"], untilMs: UNTIL_MS };
  assert.equal(await insertDeviceCode(database, device, USER_CODE, NOW_MS), true);
  const code: Code = {
    ...{ id: newId("g", NOW_MS + 1), app, user, scopes: ["consumer"], challenge: null },
    ...{ redirectUri: "", untilMs: UNTIL_MS },
  };
  const decide = (given: Code | undefined, nowMs = NOW_MS + 1, at = database) => {
    const audited = { actor: user, action: "decided", target: app, address: null };
    return decideDeviceCode(at, HASH, given, session, audited, nowMs);
  };
  const countAudit = async () =>
    (await database.query(sql`SELECT 1 FROM audit WHERE action = 'decided'`)).length;
  return { database, device, user, session, code, decide, countAudit };
}

test("a device code is found by its hash or by that of its user code alone", async (t) => {
  const { database, device } = await openWithDevice(t);
  const expected = { ...device, decision: null };
  for (const [by, hash] of [["hash", HASH], ["userCode", USER_CODE]] as const) {
    const { hash: found, ...rest } = await findDeviceCode(database, by, hash) ?? {};
    assert.deepEqual({ ...rest, hash: Buffer.from(found ?? []) }, expected);
  }
  assert.equal(await findDeviceCode(database, "hash", USER_CODE), undefined);
  assert.equal(await findDeviceCode(database, "userCode", HASH), undefined);
});

test("an allowed device gets a code with the same hash, once", async (t) => {
  const { database, code, decide, countAudit } = await openWithDevice(t);
  assert.equal(await decide(code), true);
  assert.deepEqual(await findCode(database, code.id, HASH), { ...code, resource: null });
  assert.equal((await findDeviceCode(database, "hash", HASH))?.decision, code.id);
  const other = { ...code, id: newId("g", NOW_MS + 2) };
  assert.equal(await decide(other), false);
  assert.equal(await decide(undefined), false);
  assert.equal(await findCode(database, other.id, HASH), undefined);
  assert.equal(await countAudit(), 1);
});

test("a denied device gets no code, and cannot be allowed later", async (t) => {
  const { database, code, decide, countAudit } = await openWithDevice(t);
  assert.equal(await decide(undefined), true);
  assert.equal((await findDeviceCode(database, "hash", HASH))?.decision, DENIED);
  assert.equal(await decide(code), false);
  assert.deepEqual(await database.query(sql`SELECT 1 WHERE ${hasCode(code.id)}`), []);
  assert.equal(await countAudit(), 1);
});

test("of simultaneous decisions in two processes exactly one is stored", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const one = openDatabase(t, path);
  const two = openDatabase(t, path);
  const { code, decide, countAudit } = await openWithDevice(t, one);
  const done = await Promise.all(Array.from({ length: 20 }, (_, at) => {
    const given = at % 3 ? { ...code, id: newId("g", NOW_MS + 1) } : undefined;
    return decide(given, NOW_MS + 1, at % 2 ? one : two);
  }));
  assert.equal(done.filter(Boolean).length, 1);
  assert.equal(await countAudit(), 1);
});

test("no decision is stored after the code's end, or the end of a party's rights", async (t) => {
  const cases: ((stage: Awaited<ReturnType<typeof openWithDevice>>) => Promise<unknown>)[] = [
    async ({ decide, code }) => assert.equal(await decide(code, UNTIL_MS), false),
    async ({ decide }) => assert.equal(await decide(undefined, UNTIL_MS), false),
    async ({ database, session }) => database.write([deleteSession(session)]),
    async ({ database, user }) => changeUser(database, user, { scopes: ["orders"] }),
    async ({ database, code: { app } }) =>
      database.write([sql`UPDATE apps SET status = 'disabled' WHERE id = ${app}`]),
  ];
  for (const [index, end] of cases.entries()) {
    const stage = await openWithDevice(t, await openWithOthers(t));
    await end(stage);
    if (index > 1) assert.equal(await stage.decide(stage.code), false);
    assert.equal((await findDeviceCode(stage.database, "hash", HASH))?.decision, null);
    assert.deepEqual(await stage.database.query(sql`SELECT 1 FROM codes`), []);
    assert.equal(await stage.countAudit(), 0);
  }
});

test("the device codes that wait are limited for each app and for all together", async (t) => {
  const database = openDatabase(t);
  const fill = (app: string, untilMs: number) => database.write([
    sql`${numbers(MOST_OF_APP)}
      INSERT INTO device_codes (hash, userCode, app, scopes, untilMs)
      SELECT CAST(${app} || i AS BLOB), CAST(${app} || i AS BLOB), ${app}, '[]', ${untilMs} FROM n`,
  ]);
  await fill("a0", NOW_MS); // these have expired
  await fill("a1", UNTIL_MS);
  assert.equal(await insert(database, "a1", "x"), false);
  assert.equal(await insert(database, "a2", "y"), true);
  await database.write([sql`DELETE FROM device_codes WHERE hash = CAST('a11' AS BLOB)`]);
  assert.equal(await insert(database, "a1", "x"), true);
  assert.equal(await insert(database, "a1", "z"), false);
  await fill("a3", UNTIL_MS); // now the limit for all together is reached
  assert.equal(await insert(database, "a4", "z"), false);
  assert.equal(await insert(database, "a4", "z", UNTIL_MS), true);
});

test("a user code that is in use is not given to another device", async (t) => {
  const { database, device } = await openWithDevice(t);
  const other = { ...device, hash: sha256("other") };
  assert.equal(await insertDeviceCode(database, other, USER_CODE, NOW_MS), false);
});

test("the purge removes a code ten minutes after it has expired", async (t) => {
  const { database } = await openWithDevice(t);
  const { signal } = new AbortController();
  const retention = { eventsMs: 1, auditMs: 1 };
  await purge(database, retention, UNTIL_MS + DEVICE_CODE_MS - 1, signal);
  assert.ok(await findDeviceCode(database, "hash", HASH));
  await purge(database, retention, UNTIL_MS + DEVICE_CODE_MS, signal);
  assert.equal(await findDeviceCode(database, "hash", HASH), undefined);
});
