import assert from "node:assert/strict";
import { test } from "node:test";
import { createSeal, type Seal, SealError } from "../../src/base/seal.ts";
import { type Database } from "../../src/database/database.ts";
import { findValue } from "../../src/database/rows.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { insertAudit } from "../../src/store/audit.ts";
import { checkSeal, loadPageKey, resealDatabase } from "../../src/database/settings.ts";
import { openDatabase } from "../helpers/database.ts";
import { NEVER } from "../helpers/never.ts";

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const old = createSeal(OLD);
const both = createSeal(NEW, OLD);
const fresh = createSeal(NEW);

const audit = (): Sql =>
  insertAudit({ actor: "cli", action: "key.reseal", target: "database", address: null }, 1);

async function addSubscription(database: Database, id: string, seal: Seal): Promise<void> {
  const [secret, ...older] = [`whsec_${id}`, `whsec_old-${id}`, `whsec_older-${id}`]
    .map((each) => seal.encrypt(each, id));
  await database.write([
    sql`INSERT INTO subscriptions
         (id, principal, app, event, endpoint, status, secret, oldSecret, createdAtMs)
       VALUES (${id}, 'u1', 'login', 'x', ${id}, 'active', ${secret ?? ""}, ${older.join(" ")}, 1)`,
  ]);
}

/** Seals a database with the old key, with secrets in every place, and returns its page key. */
async function sealedDatabase(database: Database, count: number): Promise<Uint8Array> {
  await checkSeal(database, old);
  await database.write([
    sql`INSERT INTO keys (kid, alg, private, createdAtMs, signsFromMs, tokenTtlMs)
       VALUES ('k1', 'ES256', ${old.encrypt("pem", "k1")}, 1, 1, 1)`,
  ]);
  for (let index = 0; index < count; index++) await addSubscription(database, `s${index}`, old);
  return loadPageKey(database, old);
}

test("after a reseal the first key decrypts everything and the old key nothing", async (t) => {
  const database = openDatabase(t);
  const pageKey = await sealedDatabase(database, 1_203);

  const count = await resealDatabase(database, both, audit(), NEVER);

  assert.equal(count, 2 * 1_203 + 2);
  await checkSeal(database, fresh);
  await assert.rejects(checkSeal(database, old), /not the key/);
  assert.deepEqual(await loadPageKey(database, fresh), pageKey);
  const rows = await database.query<{ id: string; secret: string; oldSecret: string }>(
    sql`SELECT id, secret, oldSecret FROM subscriptions`,
  );
  for (const { id, secret, oldSecret } of rows) {
    assert.equal(fresh.decrypt(secret, id), `whsec_${id}`);
    const older = oldSecret.split(" ").map((each) => fresh.decrypt(each, id));
    assert.deepEqual(older, [`whsec_old-${id}`, `whsec_older-${id}`]);
    assert.throws(() => old.decrypt(secret, id), SealError);
  }
  const [key] = await database.query<{ private: string }>(sql`SELECT private FROM keys`);
  assert.equal(fresh.decrypt(key?.private ?? "", "k1"), "pem");
  assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
});

test("an interrupted reseal leaves both keys needed, and a later one completes it", async (t) => {
  const database = openDatabase(t);
  await sealedDatabase(database, 3);

  const aborted = AbortSignal.abort(new Error("enough"));
  const interrupted = resealDatabase(database, both, audit(), aborted);
  await assert.rejects(interrupted, /enough/);

  await assert.rejects(checkSeal(database, fresh), /not the key/);
  await checkSeal(database, both);
  await resealDatabase(database, both, audit(), NEVER);
  await checkSeal(database, fresh);
});

test("a secret that is replaced during a reseal keeps its new value", async (t) => {
  const database = openDatabase(t);
  await sealedDatabase(database, 1);
  const replace = sql`UPDATE subscriptions SET secret = ${both.encrypt("whsec_next", "s0")}`;
  const busy: Database = {
    ...database,
    async write(batch) {
      if (batch[0]?.sql.includes("SET secret")) await database.write([replace]);
      return database.write(batch);
    },
  };
  await resealDatabase(busy, both, audit(), NEVER);
  const secret = await findValue<string>(database, sql`SELECT secret FROM subscriptions`);
  assert.equal(fresh.decrypt(secret ?? "", "s0"), "whsec_next");
});

test("a second reseal changes nothing", async (t) => {
  const database = openDatabase(t);
  await sealedDatabase(database, 3);
  await resealDatabase(database, both, audit(), NEVER);

  assert.equal(await resealDatabase(database, both, audit(), NEVER), 0);
});
