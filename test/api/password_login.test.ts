import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createPasswordHasher } from "../../src/base/password.ts";
import { Problem } from "../../src/base/problem.ts";
import { ConflictError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { purge } from "../../src/store/purge.ts";
import { changeUser } from "../helpers/database.ts";
import { APP, HERE, MINUTE_MS, openGatedLogin, openLogin, RIGHT, WRONG } from "./login_stage.ts";

test("the right password is accepted, and the outcome has the user", async (t) => {
  const { login, user } = await openLogin(t);
  const outcome = await login("marta", RIGHT);
  assert.ok(outcome.kind === "ok");
  assert.equal(outcome.user.id, user);
});

test("a user name is accepted in any case", async (t) => {
  const { login } = await openLogin(t);
  assert.equal((await login("MARTA", RIGHT)).kind, "ok");
});

test("a wrong password, an unknown name and a disabled user have the same outcome", async (t) => {
  const { login, addDisabled } = await openLogin(t);
  await addDisabled("otto");
  for (const [name, password] of [["marta", WRONG], ["nobody", RIGHT], ["otto", RIGHT]] as const) {
    assert.deepEqual(await login(name, password), { kind: "wrong" });
  }
});

test("a wrong password, an unknown name and a disabled user each cost a hash", async (t) => {
  const { login, addDisabled, checks } = await openLogin(t);
  await addDisabled("otto");
  await login("marta", WRONG);
  await login("nobody", WRONG);
  await login("otto", WRONG);
  assert.equal(checks.count, 3);
});

test("a login past the hasher's queue is 503, which does not count as a failure", async (t) => {
  const { login } = await openLogin(t, createPasswordHasher(1, 0));
  const results = await Promise.allSettled(Array.from({ length: 12 }, () => login("marta", RIGHT)));
  const refused = results.filter((result) => result.status === "rejected");
  assert.ok(refused.length > 0);
  for (const { reason } of refused) assert.ok(reason instanceof Problem && reason.status === 503);
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

test("a password that is replaced while its check waits is wrong", async (t) => {
  const { login, database, user, gate } = await openGatedLogin(t);
  const outcome = login("marta", RIGHT);
  await gate.reached;
  await database.write([sql`UPDATE users SET phc = '$other' WHERE id = ${user}`]);
  gate.open();
  assert.deepEqual(await outcome, { kind: "wrong" });
});

test("a user who is disabled while the check waits cannot log in", async (t) => {
  const { login, database, user, gate } = await openGatedLogin(t);
  const outcome = login("marta", RIGHT);
  await gate.reached;
  await changeUser(database, user, { status: "disabled" });
  gate.open();
  assert.deepEqual(await outcome, { kind: "wrong" });
});

test("a one-time password is used up when the login is stored, not by its check", async (t) => {
  const { database, login, clock } = await openLogin(t);
  await database.write([sql`UPDATE users SET passwordUntilMs = ${clock.nowMs + MINUTE_MS}`]);
  const logins = [await login("marta", RIGHT), await login("marta", RIGHT)];
  const [first, second] = logins.map((outcome) => outcome.kind === "ok" ? outcome.uses : []);
  await database.write(first ?? []);
  await assert.rejects(database.write(second ?? []), ConflictError);
  assert.deepEqual(await login("marta", RIGHT), { kind: "wrong" });
});

test("a throttled login writes nothing", async (t) => {
  const { login, fail, writes } = await openLogin(t);
  await fail(10, "marta");
  const before = writes.count;
  await Promise.all(Array.from({ length: 20 }, () => login("marta", RIGHT)));
  assert.equal(writes.count, before);
});

test("a success and a failure write once, a success after a failure three times", async (t) => {
  const { login, writes } = await openLogin(t);
  const costs = async (password: string) => {
    const before = writes.count;
    await login("marta", password);
    return writes.count - before;
  };
  assert.deepEqual([await costs(RIGHT), await costs(WRONG), await costs(RIGHT)], [1, 1, 3]);
});

test("expired failures are purged, and those ahead of the clock do not count", async (t) => {
  const { database, login, fail, clock } = await openLogin(t);
  const rows = async () =>
    (await database.query(sql`SELECT 1 FROM login_failures`)).length;
  const { signal } = new AbortController();
  const purgeNow = () => purge(database, { eventsMs: 0, auditMs: 0 }, clock.nowMs, signal);
  await fail(2, "marta");
  clock.nowMs += 10 * MINUTE_MS;
  await fail(3, "marta");
  await purgeNow();
  assert.equal(await rows(), 5);
  clock.nowMs += 5 * MINUTE_MS;
  await purgeNow();
  assert.equal(await rows(), 3);
  clock.nowMs -= 60 * MINUTE_MS;
  assert.equal((await login("marta", RIGHT)).kind, "ok");
  await login("marta", WRONG); // deletes the failures that are ahead of the clock
  assert.equal(await rows(), 1);
});

test("a stored failure does not contain the name that was sent", async (t) => {
  const { database, fail } = await openLogin(t);
  await fail(1, "my-password-in-the-wrong-field");
  const rows = await database.query(sql`SELECT * FROM login_failures`);
  assert.equal(rows.length, 1);
  assert.doesNotMatch(JSON.stringify(rows), /my-password/);
});

test("a failure of a very long name takes only a few bytes of memory", async (t) => {
  const { login, fail } = await openLogin(t);
  const long = "x".repeat(1_000_000);
  await fail(10, long);
  assert.equal((await login(long, WRONG)).kind, "throttled");
  assert.equal((await login(`${long}y`, WRONG)).kind, "wrong");
  const beforeBytes = usedBytes();
  for (let at = 0; at < 100; at++) {
    await login(`${at}${"y".repeat(1_000_000)}`, WRONG, `198.51.100.${at}`);
  }
  const grownBytes = usedBytes() - beforeBytes;
  assert.ok(grownBytes < 20_000_000, `${grownBytes} bytes for 100 names of a megabyte`);
});

test("failures are audited with the user's id, never with the name that was sent", async (t) => {
  const { login, recorded, user } = await openLogin(t);
  await login("marta", WRONG);
  await login("my-password-in-the-wrong-field", WRONG);
  assert.deepEqual(recorded.map(({ target }) => target), [user, "unknown"]);
  assert.doesNotMatch(JSON.stringify(recorded), /my-password|not the password/);
});

test("a failure's actor is the app, the user who is logged in, or else anonymous", async (t) => {
  const { login, recorded, user } = await openLogin(t);
  await login("marta", WRONG, HERE, APP);
  await login("marta", WRONG, HERE, { isLoggedIn: true });
  await login("marta", WRONG);
  assert.deepEqual(recorded.map(({ actor }) => actor), ["a1", user, "anonymous"]);
});

/** The size of the heap after garbage collection. */
function usedBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}
