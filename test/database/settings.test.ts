import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createSeal, type Seal } from "../../src/base/seal.ts";
import { type Database, UnusableDatabaseError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { checkSeal, loadPageKey } from "../../src/database/settings.ts";
import { makeFolder, openDatabase } from "../helpers/database.ts";

const unsealed = createSeal(undefined);
const sealed = createSeal(Buffer.alloc(32, 1));
const otherSeal = createSeal(Buffer.alloc(32, 2));

const PEM = "-----BEGIN PRIVATE KEY-----\n" + "MC4CAQAwBQYDK2Vw".repeat(100);
const SECRET = "whsec_an-old-secret-that-must-not-stay-readable";

test("checkSeal() accepts an unsealed database without a key", async (t) => {
  const database = openDatabase(t);
  await checkSeal(database, unsealed);
  await checkSeal(database, unsealed);
});

test("checkSeal() accepts a sealed database with the same key", async (t) => {
  const database = openDatabase(t);
  await checkSeal(database, sealed);
  await checkSeal(database, sealed);
});

for (const [what, seal, reason] of [
  ["another key", otherSeal, /not the key/],
  ["no key", unsealed, /missing/],
] as const) {
  test(`checkSeal() refuses a sealed database with ${what}, and changes nothing`, async (t) => {
    const database = openDatabase(t);
    await checkSeal(database, unsealed);
    await addSecrets(database, unsealed);
    await checkSeal(database, sealed);
    const before = await dump(database);
    await assert.rejects(checkSeal(database, seal), (error: unknown) => {
      assert.ok(error instanceof UnusableDatabaseError);
      assert.match(error.message, /GATEPOST_SECRET_KEY/);
      assert.match(error.message, reason);
      return true;
    });
    assert.deepEqual(await dump(database), before);
  });
}

test("checkSeal() with a first key encrypts all stored secrets with it", async (t) => {
  const database = openDatabase(t);
  await checkSeal(database, unsealed);
  await addSecrets(database, unsealed);
  const pageKey = await loadPageKey(database, unsealed);

  await checkSeal(database, sealed);
  const text = JSON.stringify(await dump(database));
  assert.ok(!text.includes("plain:") && !text.includes("PRIVATE KEY") && !text.includes(SECRET));
  const [key] = await database.query<{ kid: string; private: string }>(sql`SELECT * FROM keys`);
  assert.equal(sealed.decrypt(key?.private ?? "", "k1"), PEM);
  const [subscription] = await database.query<{ secret: string; oldSecret: string }>(
    sql`SELECT secret, oldSecret FROM subscriptions WHERE id = 's1'`,
  );
  assert.equal(sealed.decrypt(subscription?.secret ?? "", "s1"), SECRET);
  assert.equal(sealed.decrypt(subscription?.oldSecret ?? "", "s1"), `${SECRET}-old`);
  assert.deepEqual(await loadPageKey(database, sealed), pageKey);
});

test("secrets that were encrypted later are readable nowhere in the file", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = openDatabase(t, path);
  await addSecrets(database, unsealed);
  await checkSeal(database, sealed);
  await database.close();
  const bytes = readFileSync(path);
  assert.ok(!bytes.includes(SECRET), "a signing secret");
  assert.ok(!bytes.includes("PRIVATE KEY"), "a private key's beginning");
  assert.ok(!bytes.includes("MC4CAQAwBQYDK2VwMC4CAQAwBQYDK2Vw"), "a private key");
});

test("two processes may seal a database at once", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const [one, other] = [openDatabase(t, path), openDatabase(t, path)];
  await addSecrets(one, unsealed);
  await Promise.all([checkSeal(one, sealed), checkSeal(other, sealed)]);
  const [key] = await one.query<{ private: string }>(sql`SELECT private FROM keys`);
  assert.equal(sealed.decrypt(key?.private ?? "", "k1"), PEM);
});

test("one of two processes that seal a database with different keys is refused", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const [one, other] = [openDatabase(t, path), openDatabase(t, path)];
  await addSecrets(one, unsealed);
  const results = await Promise.allSettled([checkSeal(one, sealed), checkSeal(other, otherSeal)]);
  assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

test("loadPageKey() returns 32 bytes, the same at each start", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const database = openDatabase(t, path);
  const key = await loadPageKey(database, unsealed);
  assert.equal(key.length, 32);
  assert.deepEqual(await loadPageKey(database, unsealed), key);
  await database.close();
  assert.deepEqual(await loadPageKey(openDatabase(t, path), unsealed), key);
});

test("loadPageKey() returns another key for each database", async (t) => {
  const keys = await Promise.all([1, 2].map(() => loadPageKey(openDatabase(t), unsealed)));
  assert.notDeepEqual(keys[0], keys[1]);
});

test("loadPageKey() returns the same key to several processes that start at once", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path), openDatabase(t, path)];
  const [first, ...others] = await Promise.all(
    databases.map((database) => loadPageKey(database, unsealed)),
  );
  for (const other of others) assert.deepEqual(other, first);
});

test("loadPageKey() encrypts the page key of a sealed database", async (t) => {
  const database = openDatabase(t);
  await checkSeal(database, sealed);
  await loadPageKey(database, sealed);
  assert.doesNotMatch(JSON.stringify(await dump(database)), /plain:/);
});

async function addSecrets(database: Database, seal: Seal): Promise<void> {
  await database.write([
    sql`INSERT INTO keys (kid, alg, private, createdAtMs, signsFromMs, tokenTtlMs)
       VALUES ('k1', 'EdDSA', ${seal.encrypt(PEM, "k1")}, 1, 1, 1)`,
    ...["s1", "s2"].map((id) =>
      sql`INSERT INTO subscriptions
           (id, principal, app, event, endpoint, status, secret, oldSecret, createdAtMs)
         VALUES (${id}, 'u', 'login', 'e', ${id}, 'active', ${seal.encrypt(SECRET, id)},
           ${id === "s1" ? seal.encrypt(`${SECRET}-old`, id) : null}, 1)`
    ),
  ]);
}

async function dump(database: Database): Promise<unknown[]> {
  const tables = [sql`settings`, sql`keys`, sql`subscriptions`];
  return Promise.all(tables.map((table) => database.query(sql`SELECT * FROM ${table}`)));
}
