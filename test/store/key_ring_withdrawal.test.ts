import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import type { AuditEntry } from "../../src/store/audit.ts";
import { ROTATION_LEAD_MS } from "../../src/store/key_ring.ts";
import { kids, MINUTE_MS, openStage, START_MS, storedKeys } from "./key_ring_stage.ts";

test("withdrawing the signing key removes it, and a new key signs at once", async (t) => {
  const { open, database } = openStage(t);
  const ring = await open();
  const { kid } = ring.signing();
  assert.equal(await ring.withdraw(kid), true);
  assert.notEqual(ring.signing().kid, kid);
  assert.equal(ring.find(kid), undefined);
  assert.deepEqual(kids(ring), [ring.signing().kid]);
  assert.deepEqual((await storedKeys(database)).map((key) => key.kid), kids(ring));
});

test("withdrawing the key that signs never makes an older key sign again", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const old = ring.signing().kid;
  stage.nowMs += MINUTE_MS;
  const { kid } = await ring.rotate(0);
  stage.nowMs += MINUTE_MS;
  await ring.withdraw(kid);
  assert.ok(![old, kid].includes(ring.signing().kid));
  assert.ok(ring.find(old), "its tokens stay valid");
});

test("withdrawing a key that does not sign yet leaves the signing key as it was", async (t) => {
  const { open } = openStage(t);
  const ring = await open();
  const { kid } = ring.signing();
  const waiting = await ring.rotate(ROTATION_LEAD_MS);
  assert.equal(await ring.withdraw(waiting.kid), true);
  assert.equal(ring.signing().kid, kid);
  assert.deepEqual(kids(ring), [kid]);
  assert.deepEqual(ring.published().map((key) => key.publishedUntilMs), [Infinity]);
});

const BY = { actor: "u1", app: null, address: "192.0.2.1" };

const listAudit = (database: Database) =>
  database.query<Pick<AuditEntry, "actor" | "action" | "target">>(
    sql`SELECT actor, action, target FROM audit ORDER BY id`,
  );

test("withdrawing a key that does not exist changes nothing, and is not audited", async (t) => {
  const { open, database } = openStage(t);
  const ring = await open();
  const { kid } = ring.signing();
  assert.equal(await ring.withdraw("k0", BY), false);
  assert.equal(ring.signing().kid, kid);
  assert.deepEqual(await listAudit(database), []);
});

test("the audit says who rotates and withdraws keys, and leaves out the first key", async (t) => {
  const { open, database } = openStage(t);
  const ring = await open();
  const { kid } = await ring.rotate(0, BY);
  await ring.withdraw(kid, BY);
  assert.deepEqual(await listAudit(database), [
    { actor: "u1", action: "key.rotate", target: kid },
    { actor: "u1", action: "key.withdraw", target: kid },
  ]);
});

test("of two processes that withdraw a key at once, one does so and is audited", async (t) => {
  const { open, database } = openStage(t);
  const rings = await Promise.all([open(), open()]);
  const kid = rings[0].signing().kid;
  const withdrawn = await Promise.all(rings.map((ring) => ring.withdraw(kid, BY)));
  assert.deepEqual(withdrawn.toSorted(), [false, true]);
  assert.equal((await listAudit(database)).length, 1);
  assert.equal((await storedKeys(database)).length, 1, "the successor");
});

test("another process follows a rotation and a withdrawal when it refreshes", async (t) => {
  const { open } = openStage(t);
  const [first, second] = [await open(), await open()];
  const before = first.signing().kid;
  const { kid } = await first.rotate(0);
  await second.refresh();
  assert.equal(second.signing().kid, kid);
  await second.withdraw(before);
  await first.refresh();
  assert.equal(first.find(before), undefined);
  await second.withdraw(kid);
  await first.refresh();
  assert.equal(first.signing().kid, second.signing().kid);
});

test("a key that another process has just made can be withdrawn", async (t) => {
  const { open } = openStage(t);
  const [first, second] = [await open(), await open()];
  const { kid } = await first.rotate(0);
  assert.equal(await second.withdraw(kid), true);
  await first.refresh();
  assert.equal(first.find(kid), undefined);
});

test("withdrawing the only key after the clock was set back makes a successor", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const { kid } = ring.signing();
  stage.nowMs = START_MS - MINUTE_MS;
  assert.equal(await ring.withdraw(kid), true);
  assert.notEqual(ring.signing().kid, kid);
  assert.equal(ring.published().length, 1);
});
