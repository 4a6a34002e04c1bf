import assert from "node:assert/strict";
import { test } from "node:test";
import { createSeal, type Seal, SealError } from "../../src/base/seal.ts";
import { type Database, sql, type Statement } from "../../src/database/database.ts";
import { insertAudit } from "../../src/store/audit.ts";
import { checkSeal, loadPageKey, resealDatabase } from "../../src/database/settings.ts";
import { openDatabase } from "../helpers/database.ts";

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const old = createSeal(OLD);
const both = createSeal(NEW, OLD);
const fresh = createSeal(NEW);

const audit = (): Statement =>
  insertAudit({ actor: "cli", action: "key.reseal", target: "database", address: null }, 1);
const NEVER = new AbortController().signal;

async function addSubscription(database: Database, id: string, seal: Seal): Promise<void> {
  const [secret, oldSecret] = [`whsec_${id}`, `whsec_old-${id}`]
    .map((each) => seal.encrypt(each, id));
  await database.write([
    sql(
      `INSERT INTO subscriptions
         (id, principal, app, event, endpoint, status, secret, old_secret, created_at)
       VALUES (?1, 'u1', 'login', 'x', ?1, 'active', ?2, ?3, 1)`,
      id,
      secret ?? "",
      oldSecret ?? "",
    ),
  ]);
}

/** A database that was sealed with the old key, with secrets in every place. */
async function sealedDatabase(database: Database, count: number): Promise<Uint8Array> {
  await checkSeal(database, old);
  await database.write([
    sql(
      `INSERT INTO keys (kid, alg, private, created_at, signs_from, token_ttl)
       VALUES ('k1', 'ES256', ?1, 1, 1, 1)`,
      old.encrypt("pem", "k1"),
    ),
  ]);
  for (let index = 0; index < count; index++) await addSubscription(database, `s${index}`, old);
  return loadPageKey(database, old);
}

test("after a reseal the first key opens everything and the old one nothing", async (t) => {
  const database = openDatabase(t);
  const pageKey = await sealedDatabase(database, 1_203);

  const count = await resealDatabase(database, both, audit(), NEVER);

  assert.equal(count, 2 * 1_203 + 2);
  await checkSeal(database, fresh);
  await assert.rejects(checkSeal(database, old), /not the key/);
  assert.deepEqual(await loadPageKey(database, fresh), pageKey);
  const rows = await database.query<{ id: string; secret: string; old_secret: string }>(
    "SELECT id, secret, old_secret FROM subscriptions",
  );
  for (const { id, secret, old_secret: oldSecret } of rows) {
    assert.equal(fresh.decrypt(secret, id), `whsec_${id}`);
    assert.equal(fresh.decrypt(oldSecret, id), `whsec_old-${id}`);
    assert.throws(() => old.decrypt(secret, id), SealError);
  }
  const [key] = await database.query<{ private: string }>("SELECT private FROM keys");
  assert.equal(fresh.decrypt(key?.private ?? "", "k1"), "pem");
  assert.equal((await database.query("SELECT 1 FROM audit")).length, 1);
});

test("a reseal that was interrupted leaves every key needed, and goes on later", async (t) => {
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

test("a second reseal has nothing to do", async (t) => {
  const database = openDatabase(t);
  await sealedDatabase(database, 3);
  await resealDatabase(database, both, audit(), NEVER);

  assert.equal(await resealDatabase(database, both, audit(), NEVER), 0);
});
