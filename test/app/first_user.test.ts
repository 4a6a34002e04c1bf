import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ensureFirstUser } from "../../src/app/first_user.ts";
import { createPasswordHasher } from "../../src/base/password.ts";
import { findUserByName, USER_LIST } from "../../src/store/users.ts";
import { listPart } from "../../src/store/list.ts";
import { addUser, makeFolder, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const hasher = createPasswordHasher(2);

test("a database without users gets `admin` with scopes backend and consumer", async (t) => {
  const database = openDatabase(t);
  await ensureFirstUser(database, hasher, undefined, NOW_MS);
  const admin = await findUserByName(database, "admin");
  assert.match(admin?.id ?? "", /^u/);
  assert.deepEqual([...admin?.scopes ?? []].sort(), ["backend", "consumer"]);
  assert.equal(admin?.status, "active");
  assert.equal(admin.createdAtMs, NOW_MS);
});

test("a generated password is shown once, works, and has 18 random bytes", async (t) => {
  const database = openDatabase(t);
  const password = await ensureFirstUser(database, hasher, undefined, NOW_MS);
  assert.match(password ?? "", /^[A-Za-z0-9_-]{24}$/);
  const admin = await findUserByName(database, "admin");
  assert.equal(await hasher.verify(password ?? "", admin?.phc), true);
  assert.equal(await ensureFirstUser(database, hasher, undefined, NOW_MS), undefined);
});

test("each database gets a password of its own", async (t) => {
  const passwords = await Promise.all(
    [1, 2].map(() => ensureFirstUser(openDatabase(t), hasher, undefined, NOW_MS)),
  );
  assert.notEqual(passwords[0], passwords[1]);
});

test("a given password is used and not shown", async (t) => {
  const database = openDatabase(t);
  assert.equal(await ensureFirstUser(database, hasher, "correct horse", NOW_MS), undefined);
  const admin = await findUserByName(database, "admin");
  assert.equal(await hasher.verify("correct horse", admin?.phc), true);
});

test("a given password is ignored once there is a user", async (t) => {
  const database = openDatabase(t);
  await ensureFirstUser(database, hasher, "correct horse", NOW_MS);
  assert.equal(await ensureFirstUser(database, hasher, "another horse", NOW_MS), undefined);
  const admin = await findUserByName(database, "admin");
  assert.equal(await hasher.verify("another horse", admin?.phc), false);
});

test("a database that has any user gets no admin", async (t) => {
  const database = openDatabase(t);
  await addUser(database, { username: "marta" });
  assert.equal(await ensureFirstUser(database, hasher, undefined, NOW_MS), undefined);
  assert.equal(await findUserByName(database, "admin"), undefined);
});

test("only one process of several makes admin, and shows the password", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path), openDatabase(t, path)];
  const [first] = databases;
  assert.ok(first);
  const passwords = (await Promise.all(
    databases.map((database) => ensureFirstUser(database, hasher, undefined, NOW_MS)),
  )).filter((password) => password !== undefined);
  assert.equal(passwords.length, 1);
  const { items } = await listPart(first, USER_LIST, { limit: 9 });
  assert.equal(items.length, 1);
  const admin = await findUserByName(first, "admin");
  assert.equal(await hasher.verify(passwords[0] ?? "", admin?.phc), true);
});
