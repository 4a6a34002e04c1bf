import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccounts } from "../../src/store/accounts.ts";
import { deleteApp, replaceAppSecret, updateApp } from "../../src/store/apps.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { addApp, addUser, changeUser, openDatabase } from "../helpers/database.ts";

test("createAccounts() reads an app or a user once, as long as none changes", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  let reads = 0;
  const counting: typeof database = {
    ...database,
    query(statement) {
      reads++;
      return database.query(statement);
    },
  };
  const accounts = createAccounts(counting, await load(database));
  for (let time = 0; time < 3; time++) {
    assert.equal((await accounts.findClient(app))?.id, app);
    assert.equal((await accounts.findUser(user))?.id, user);
  }
  assert.equal(reads, 2);
});

test("nameHolder() names what it has in memory if the database is unavailable", async (t) => {
  const database = openDatabase(t);
  const [app, user, other] = [await addApp(database), await addUser(database),
    await addUser(database)];
  let error: Error | undefined;
  const failing: typeof database = {
    ...database,
    query: (statement) => error ? Promise.reject(error) : database.query(statement),
  };
  const accounts = createAccounts(failing, await load(database));
  const name = (sub: string, clientId: string) =>
    accounts.nameHolder({ sub, kind: "user", clientId });
  const known = await name(user, app);
  assert.equal(known.username, (await accounts.findUser(user))?.username);
  assert.equal(known.client_id, app);
  error = new UnavailableError("No node answers");
  assert.deepEqual(await name(user, app), known);
  assert.deepEqual(await name(user, "login"), { ...known, client_id: "login" });
  assert.deepEqual(await name(other, "login"), { client_id: "login" });
  const ofApp = { sub: app, kind: "app", clientId: app } as const;
  assert.deepEqual(await accounts.nameHolder(ofApp), { client_id: app });
  error = new TypeError("a fault");
  await assert.rejects(name(other, "login"), TypeError);
});

test("a change of an app or a user is seen after the next refresh()", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const revocations = await load(database);
  const accounts = createAccounts(database, revocations);
  const before = await accounts.findClient(app);
  await accounts.findUser(user);

  assert.ok(before);
  await database.write([updateApp(before, { ...before, status: "disabled" })]);
  await revocations.refresh();
  assert.equal((await accounts.findClient(app))?.status, "disabled");

  const secret = Buffer.alloc(32, 9);
  await database.write([replaceAppSecret(app, secret, 0)]);
  await revocations.refresh();
  assert.deepEqual(Buffer.from((await accounts.findClient(app))?.secret ?? []), secret);

  await changeUser(database, user, { scopes: ["other"] });
  await revocations.refresh();
  assert.deepEqual((await accounts.findUser(user))?.scopes, ["other"]);

  await database.write([deleteApp(app)]);
  await revocations.refresh();
  assert.equal(await accounts.findClient(app), undefined);
});

test("an account that does not exist is looked up each time", async (t) => {
  const database = openDatabase(t);
  const accounts = createAccounts(database, await load(database));
  assert.equal(await accounts.findUser("u0mkf3q1c000aaaaaaaaaaaa"), undefined);
  const user = await addUser(database);
  assert.equal((await accounts.findUser(user))?.id, user);
});

test("a row that was read before a change is not kept after it", async (t) => {
  const database = openDatabase(t);
  const [app, user] = [await addApp(database), await addUser(database)];
  let change: (() => Promise<unknown>) | undefined;
  const slow: typeof database = {
    ...database,
    async query<Row>(statement: Sql) {
      const rows = await database.query<Row>(statement);
      if (!/FROM (apps|users) WHERE/.test(statement.sql)) return rows;
      const before = change;
      change = undefined;
      await before?.(); // and another look-up notices it, while this one's row is on its way
      return rows;
    },
  };
  const revocations = await load(database);
  const accounts = createAccounts(slow, revocations);
  change = async () => {
    await database.write([
      sql`UPDATE apps SET status = 'disabled'`,
      sql`UPDATE users SET status = 'disabled'`,
    ]);
    await revocations.refresh();
    await accounts.findClient("a1");
  };
  await accounts.findClient(app);
  assert.equal((await accounts.findClient(app))?.status, "disabled");
  change = async () => {
    await database.write([sql`UPDATE users SET status = 'active'`]);
    await revocations.refresh();
    await accounts.findClient("a1");
  };
  await accounts.findUser(user);
  assert.equal((await accounts.findUser(user))?.status, "active");
});

test("10,000 accounts are kept in memory, and the oldest are evicted", async (t) => {
  const stored = openDatabase(t);
  await addUser(stored);
  const rows = await stored.query(sql`SELECT * FROM users`);
  let reads = 0;
  const database: Database = { ...stored, query: async () => (reads++, rows as never[]) };
  const accounts = createAccounts(database, await load(stored));
  for (let count = 0; count < 15_000; count++) await accounts.findUser(`u${count}`);
  await accounts.findUser("u5000");
  assert.equal(reads, 15_000);
  await accounts.findUser("u4999");
  assert.equal(reads, 15_001, "an older one was evicted");
});

const load = (database: Database) => loadRevocations(database, () => 0);
