import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import type { User } from "../../src/oauth/user.ts";
import { ConflictError, type Page } from "../../src/database/database.ts";
import { NEWEST } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { listPart } from "../../src/store/list.ts";
import { insertSession, isLive } from "../../src/store/sessions.ts";
import {
  deleteUser,
  findUnusedFirstUser,
  findUser,
  findUserByName,
  HAS_NO_USER,
  hasPassword,
  hasUsers,
  insertUser,
  keepPassword,
  replacePassword,
  USER_LIST,
  updateUser,
  usePassword,
} from "../../src/store/users.ts";
import { addApp, addUser, makeFolder, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

test("a user is found by id as it was stored, and active", async (t) => {
  const database = openDatabase(t);
  const stored = { username: "Marta", scopes: ["a", "b"], createdAtMs: NOW_MS };
  const id = await addUser(database, stored);
  const user = await findUser(database, id);
  assert.equal(user?.id, id);
  assert.equal(user.username, "Marta");
  assert.deepEqual(user.scopes, ["a", "b"]);
  assert.equal(user.status, "active");
  assert.equal(user.createdAtMs, NOW_MS);
});

test("a user without scopes is read back without any", async (t) => {
  const database = openDatabase(t);
  const id = await addUser(database, { scopes: [] });
  assert.deepEqual((await findUser(database, id))?.scopes, []);
});

test("an unknown id or name finds no user", async (t) => {
  const database = openDatabase(t);
  await addUser(database, { username: "marta" });
  assert.equal(await findUser(database, "u0"), undefined);
  for (const name of ["mart", "marta ", "", "%", "m_rta", "marta\u0000x"]) {
    assert.equal(await findUserByName(database, name), undefined, name);
  }
});

test("a user is found by name in any case, with the password hash", async (t) => {
  const database = openDatabase(t);
  const id = await addUser(database, { username: "Marta", phc: "$phc" });
  for (const name of ["Marta", "marta", "MARTA"]) {
    const user = await findUserByName(database, name);
    assert.equal(user?.id, id);
    assert.equal(user.phc, "$phc");
  }
});

test("a name that is taken, in whatever case, is a conflict", async (t) => {
  const database = openDatabase(t);
  await addUser(database, { username: "Marta" });
  await assert.rejects(addUser(database, { username: "mARTA" }), ConflictError);
  assert.equal((await listPart(database, USER_LIST, { limit: 10 })).items.length, 1);
});

test("of two processes that add one name at once exactly one succeeds", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const results = await Promise.allSettled(
    databases.map((database) => addUser(database, { username: "marta" })),
  );
  assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

test("users are listed newest first, page by page, each once", async (t) => {
  const database = openDatabase(t);
  const ids: string[] = [];
  for (let at = 0; at < 5; at++) ids.unshift(await addUser(database, { createdAtMs: NOW_MS + at }));
  const seen: string[] = [];
  let cursor: string | undefined = NEWEST;
  while (cursor !== undefined) {
    const page: Page<User> = await listPart(database, USER_LIST, { limit: 2, cursor });
    assert.ok(page.items.length <= 2);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.next;
  }
  assert.deepEqual(seen, ids);
});

test("a page that holds all users has no next page", async (t) => {
  const database = openDatabase(t);
  await addUser(database);
  await addUser(database);
  const all = await listPart(database, USER_LIST, { limit: 2 });
  assert.equal(all.next, undefined);
});

test("passwordPrinted is 1, 0 once used, null once the password is kept or replaced", async (t) => {
  const database = openDatabase(t);
  const id = newId("u", NOW_MS);
  const user = { id, username: "admin", phc: "$phc", scopes: [], createdAtMs: NOW_MS };
  const printed = async () => (await findUserByName(database, "admin"))?.passwordPrinted;
  const use = async () => {
    const found = await findUserByName(database, "admin");
    assert.ok(found);
    await database.write(usePassword(found, NOW_MS));
  };
  await database.write([insertUser({ ...user, passwordPrinted: 1 })]);
  assert.equal((await findUnusedFirstUser(database))?.username, "admin");
  await use();
  await use();
  assert.equal(await printed(), 0);
  assert.equal(await findUnusedFirstUser(database), undefined);
  const found = await findUser(database, id);
  assert.ok(found);
  await database.write([updateUser(found, found)]);
  assert.equal(await printed(), 0);
  await database.write([keepPassword(id)]);
  assert.equal(await printed(), null);
  for (const change of [
    [updateUser(found, found, "$own")],
    replacePassword(id, "$own", hasPassword("$phc"), NOW_MS, HOUR_MS),
  ]) {
    await database.write([deleteUser(id), insertUser({ ...user, passwordPrinted: 1 })]);
    await database.write(change);
    assert.equal(await printed(), null);
  }
  await database.write([deleteUser(id), insertUser({ ...user, passwordPrinted: 1 })]);
  await addUser(database);
  assert.equal(await findUnusedFirstUser(database), undefined, "there are other users");
});

test("a one-time password works once, before it expires, and while it is current", async (t) => {
  const database = openDatabase(t);
  const oneTime = { username: "admin", phc: "$phc", passwordUntilMs: NOW_MS + HOUR_MS };
  await addUser(database, oneTime);
  const user = await findUserByName(database, "admin");
  assert.ok(user);
  await assert.rejects(database.write(usePassword(user, NOW_MS + HOUR_MS)), ConflictError);
  await assert.rejects(database.write(usePassword({ ...user, phc: "$old" }, NOW_MS)),
    ConflictError);
  const uses = await Promise.allSettled([1, 2].map(() =>
    database.write(usePassword(user, NOW_MS))));
  assert.deepEqual(uses.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal((await findUserByName(database, "admin"))?.passwordUntilMs, 0);
});

test("a password is replaced in a valid session only", async (t) => {
  const database = openDatabase(t);
  const [id, hash] = [await addUser(database), Buffer.from("one")];
  const replace = () =>
    database.write(replacePassword(id, "$new", isLive(hash, NOW_MS), NOW_MS, HOUR_MS));
  await assert.rejects(replace(), ConflictError);
  await database.write([insertSession(hash, id, NOW_MS, NOW_MS + HOUR_MS)]);
  await replace();
  await assert.rejects(replace(), ConflictError, "the replacement has ended the session");
});

test("hasUsers() says whether there is any user", async (t) => {
  const database = openDatabase(t);
  assert.equal(await hasUsers(database), false);
  await addUser(database);
  assert.equal(await hasUsers(database), true);
});

test("insertUser() with HAS_NO_USER stores a user only if there is none", async (t) => {
  const database = openDatabase(t);
  const record = (username: string) => ({
    id: newId("u", NOW_MS),
    username,
    phc: "$phc",
    scopes: ["backend"],
    createdAtMs: NOW_MS,
  });
  assert.deepEqual(await database.write([insertUser(record("admin"), HAS_NO_USER)]), [1]);
  assert.deepEqual(await database.write([insertUser(record("second"), HAS_NO_USER)]), [0]);
  assert.equal(await findUserByName(database, "second"), undefined);
});

test("of two processes that store a first user at once exactly one does", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const changes = await Promise.all(databases.map((database, at) =>
    database.write([
      insertUser({
        id: newId("u", NOW_MS),
        username: `admin${at}`,
        phc: "$phc",
        scopes: [],
        createdAtMs: NOW_MS,
      }, HAS_NO_USER),
    ])
  ));
  assert.deepEqual(changes.flat().sort(), [0, 1]);
});

test("updateUser() stores changed fields and a new password of that user alone", async (t) => {
  const database = openDatabase(t);
  const id = await addUser(database, { username: "marta", phc: "$one", scopes: ["a"] });
  const other = await addUser(database, { username: "otto", phc: "$two", scopes: ["b"] });
  const read = await findUser(database, id);
  assert.ok(read);
  const scoped = { ...read, scopes: ["a", "c"] };
  const disabled = { ...scoped, status: "disabled" } as const;

  await database.write([updateUser(read, scoped)]);
  assert.equal((await findUserByName(database, "marta"))?.phc, "$one");
  await database.write([updateUser(scoped, scoped, "$new")]);
  await database.write([updateUser(scoped, disabled)]);
  const user = await findUserByName(database, "marta");
  assert.deepEqual([user?.phc, user?.scopes, user?.status], ["$new", ["a", "c"], "disabled"]);
  await assert.rejects(database.write([updateUser(read, read)]), ConflictError);
  assert.deepEqual(await findUser(database, id), disabled);

  const untouched = await findUserByName(database, "otto");
  assert.deepEqual([untouched?.id, untouched?.phc, untouched?.scopes, untouched?.status],
    [other, "$two", ["b"], "active"]);
});

test("deleteUser() removes the user and the user's consents, and frees the name", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database, { username: "marta" });
  const other = await addUser(database, { username: "otto" });
  const app = await addApp(database);
  const consent = (id: string) =>
    sql`INSERT INTO consents (user, app, scopes) VALUES (${id}, ${app}, '')`;
  await database.write([consent(user), consent(other)]);
  assert.deepEqual(await database.write([deleteUser(user)]), [1]);
  assert.equal(await findUser(database, user), undefined);
  const consents = await database.query<{ user: string }>(sql`SELECT user FROM consents`);
  assert.deepEqual(consents.map((row) => row.user), [other]);
  await database.write([
    insertUser({ id: newId("u", NOW_MS), username: "MARTA", phc: "", scopes: [], createdAtMs: 1 }),
  ]);
});
