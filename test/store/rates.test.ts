import assert from "node:assert/strict";
import { test } from "node:test";
import { findApp, updateApp } from "../../src/store/apps.ts";
import { sql } from "../../src/database/sql.ts";
import { loadRates } from "../../src/store/rates.ts";
import { deleteUser, findUser } from "../../src/store/users.ts";
import { addApp, addUser, changeUser, countRows, openDatabase } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";

const RATE = { count: 5, windowMs: 60_000 };

test("loadRates() loads the rates of the users and apps that have one", async (t) => {
  const database = openDatabase(t);
  const [user, app, other] = [
    await addUser(database, { rate: "5/1m" }),
    await addApp(database, { rate: "5/1m" }),
    await addUser(database),
  ];
  const rates = await loadRates(database);
  assert.deepEqual([user, app, other].map(rates.find), [RATE, RATE, undefined]);
});

test("a rate that was set, changed or removed takes effect with the next refresh()", async (t) => {
  const database = openDatabase(t);
  const rates = await loadRates(database);
  const user = await addUser(database, { rate: "5/1m" });
  assert.equal(rates.find(user), undefined);
  await rates.refresh();
  assert.deepEqual(rates.find(user), RATE);
  const app = await addApp(database, { rate: "5/1m" });
  await rates.refresh();
  assert.deepEqual(rates.find(app), RATE);

  const before = await findApp(database, app);
  assert.ok(before);
  await changeUser(database, user, { rate: "7/1m" });
  await database.write([updateApp(before, { ...before, rate: null })]);
  await rates.refresh();
  assert.deepEqual([user, app].map(rates.find), [{ ...RATE, count: 7 }, undefined]);
  await changeUser(database, user, { scopes: ["other"] });
  assert.equal((await findUser(database, user))?.rate, "7/1m");

  await database.write([deleteUser(user)]);
  await rates.refresh();
  assert.equal(rates.find(user), undefined);
});

test("about 50,000 rates are kept in memory, and no more", async (t) => {
  const database = openDatabase(t);
  const template = await addUser(database, { rate: "5/1m" });
  await database.write([sql`${numbers(54_000)}
    INSERT INTO users (id, username, phc, scopes, status, createdAtMs, rate)
    SELECT ${template} || printf('%06d', i), 'many' || i, phc, scopes, status, createdAtMs, rate
    FROM n, users WHERE id = ${template}`]);
  const rates = await loadRates(database);
  const isKept = (count: number) =>
    rates.find(template + String(count).padStart(6, "0")) !== undefined;
  assert.deepEqual([1, 49_000, 52_001, 54_000].map(isKept), [true, true, false, false]);
});

test("refresh() reads one row if no account has changed", async (t) => {
  const database = openDatabase(t);
  for (let made = 0; made < 3; made++) await addUser(database, { rate: "5/1m" });
  const { counted, found } = countRows(database);
  const rates = await loadRates(counted);
  found.rows = 0;
  await rates.refresh();
  assert.equal(found.rows, 1);
});
