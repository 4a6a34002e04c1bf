import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { createBrowserSessions } from "../../../src/api/authorization/browser_session.ts";
import { sql } from "../../../src/database/sql.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { deleteUser, revokeTokensOfUser } from "../../../src/store/users.ts";
import { addUser, openDatabase } from "../../helpers/database.ts";
import { sampleRequest } from "../../helpers/http_request.ts";

const NOW_MS = Date.UTC(2040, 0, 1);
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

async function open(t: TestContext) {
  const database = openDatabase(t);
  const clock = { nowMs: NOW_MS };
  const now = () => clock.nowMs;
  const revocations = await loadRevocations(database, now);
  const issuer = "http://127.0.0.1:8080";
  const createFor = (pageKey: Uint8Array) =>
    createBrowserSessions({ database, revocations, issuer, pageKey, now });
  const sessions = createFor(Buffer.alloc(32, 1));
  const visit = (cookie: string) => sessions.open(sampleRequest({ headers: { cookie } }));
  return {
    database,
    clock,
    createFor,
    sessions,
    visit,
    addUser: () => addUser(database),
    /** Logs in with the browser's cookies, and returns those that it has afterwards. */
    async logIn(user: string, cookie = ""): Promise<string> {
      const cookies = await sessions.logIn(await visit(cookie), user, now(), sampleRequest());
      return cookies.map((each) => each.split(";")[0]).join("; ");
    },
  };
}

test("a login of a deleted or revoked user opens no session and is not audited", async (t) => {
  const { database, visit, logIn, addUser } = await open(t);
  const [user, gone] = [await addUser(), await addUser()];
  await logIn(user);
  await database.write([deleteUser(gone)]);
  assert.equal((await visit(await logIn(gone))).user, undefined);
  await database.write(revokeTokensOfUser(user, NOW_MS, HOUR_MS));
  assert.equal((await visit(await logIn(user))).user, undefined, "its password was changed");
  assert.deepEqual(await database.query(sql`SELECT action, target FROM audit`),
    [{ action: "user.login", target: user }]);
});

test("a session lasts twelve hours from its login", async (t) => {
  const { clock, visit, logIn, addUser } = await open(t);
  const user = await addUser();
  const cookie = await logIn(user);
  clock.nowMs = NOW_MS + 12 * HOUR_MS - 1;
  assert.equal((await visit(cookie)).user?.id, user);
  clock.nowMs = NOW_MS + 12 * HOUR_MS;
  assert.equal((await visit(cookie)).user, undefined);
});

test("the last use of a session is stored once in five minutes, but not for HEAD", async (t) => {
  const { database, clock, sessions, logIn, addUser } = await open(t);
  const cookie = await logIn(await addUser());
  async function seenAfter(method: string) {
    await sessions.open(sampleRequest({ headers: { cookie }, method }));
    await addUser(); // stored after the write that nothing awaits
    return database.query(sql`SELECT seenAtMs FROM sessions`);
  }
  assert.deepEqual(await seenAfter("HEAD"), [{ seenAtMs: null }]);
  assert.deepEqual(await seenAfter("GET"), [{ seenAtMs: NOW_MS }]);
  clock.nowMs = NOW_MS + 5 * 60_000 - 1;
  assert.deepEqual(await seenAfter("GET"), [{ seenAtMs: NOW_MS }]);
  clock.nowMs = NOW_MS + 5 * 60_000;
  assert.deepEqual(await seenAfter("HEAD"), [{ seenAtMs: NOW_MS }]);
  assert.deepEqual(await seenAfter("GET"), [{ seenAtMs: clock.nowMs }]);
});

describe("a browser is a known device of", () => {
  test("a user who has logged in with it, for 180 days", async (t) => {
    const { clock, sessions, visit, logIn, addUser } = await open(t);
    const user = await addUser();
    const cookie = await logIn(user);
    const isKnown = async () => sessions.findDevice(await visit(cookie), user) !== undefined;
    clock.nowMs = NOW_MS + 180 * DAY_MS - 1;
    assert.equal(await isKnown(), true);
    clock.nowMs = NOW_MS + 180 * DAY_MS + 1;
    assert.equal(await isKnown(), false);
  });

  test("no other user", async (t) => {
    const { sessions, visit, logIn, addUser } = await open(t);
    const cookie = await logIn(await addUser());
    assert.equal(sessions.findDevice(await visit(cookie), await addUser()), undefined);
  });

  test("the last four users who have logged in", async (t) => {
    const { sessions, visit, logIn, addUser } = await open(t);
    const users = await Promise.all(Array.from({ length: 5 }, addUser));
    let cookie = "";
    for (const user of users) cookie = await logIn(user, cookie);
    const session = await visit(cookie);
    const known = users.map((user) => sessions.findDevice(session, user) !== undefined);
    assert.deepEqual(known, [false, true, true, true, true]);
  });

  test("a user once, however often the user logs in", async (t) => {
    const { visit, logIn, addUser } = await open(t);
    const user = await addUser();
    const cookie = await logIn(user, await logIn(user));
    assert.equal((await visit(cookie)).devices.length, 1);
  });

  test("no user where another service has signed its cookie", async (t) => {
    const { createFor, visit, logIn, addUser } = await open(t);
    const user = await addUser();
    const other = createFor(Buffer.alloc(32, 2));
    assert.equal(other.findDevice(await visit(await logIn(user)), user), undefined);
  });
});
