import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  generatePrivateKey,
  type SigningAlgorithm,
  verifyJwt,
} from "../../src/base/jwt.ts";
import { signJwt } from "../helpers/jwt.ts";
import { createSeal, SealError } from "../../src/base/seal.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import type { AuditEntry } from "../../src/store/audit.ts";
import { type KeyRing, loadKeyRing, ROTATION_LEAD_MS } from "../../src/store/key_ring.ts";
import { openDatabase } from "../helpers/database.ts";

const MINUTE_MS = 60_000;
const TTL_MS = 60 * MINUTE_MS;
const START_MS = Date.UTC(2040, 0, 1);

interface Ringing {
  readonly database: Database;
  nowMs: number;
  /** The time of the clock that deletions go by, where it is another. */
  cautiousMs?: number;
  /** Another process on the same database. */
  open(more?: {
    readonly alg?: SigningAlgorithm;
    readonly ttlMs?: number;
    readonly key?: Uint8Array;
    readonly keys?: readonly Uint8Array[];
    /** How far its clock is ahead. */
    readonly aheadMs?: number;
  }): Promise<KeyRing>;
}

async function setUp(t: TestContext): Promise<Ringing> {
  const database = openDatabase(t);
  const ringing: Ringing = {
    database,
    nowMs: START_MS,
    open: ({ alg = "ES256", ttlMs = TTL_MS, key, keys = key ? [key] : [], aheadMs = 0 } = {}) =>
      loadKeyRing({
        database,
        seal: createSeal(...keys),
        alg,
        accessTokenTtlMs: ttlMs,
        now: () => ringing.nowMs + aheadMs,
        cautiousNow: () => ringing.cautiousMs ?? ringing.nowMs,
      }),
  };
  return ringing;
}

const kids = (ring: KeyRing) => ring.published().map(({ kid }) => kid);
const storedKeys = (database: Database) =>
  database.query<{ kid: string; private: string }>(sql`SELECT kid, private FROM keys ORDER BY kid`);

test("a key ring on an empty database makes one key, which does not expire", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const { kid } = ring.signing();
  assert.deepEqual(kids(ring), [kid]);
  assert.deepEqual(ring.published().map((key) => key.publishedUntilMs), [Infinity]);
  ringing.nowMs += 365 * 24 * TTL_MS;
  await ring.refresh();
  assert.deepEqual([ring.signing().kid, kids(ring)], [kid, [kid]]);
});

test("a process whose clock is behind uses the first key that another has made", async (t) => {
  const { open } = await setUp(t);
  const [ahead, behind] = [await open({ aheadMs: 200 }), await open()];
  assert.deepEqual(kids(behind), kids(ahead));
  assert.equal(behind.signing().kid, ahead.signing().kid);
});

test("of many processes that start at once, only one makes the first key", async (t) => {
  const { database, open } = await setUp(t);
  const rings = await Promise.all(Array.from({ length: 4 }, () => open()));
  assert.equal((await storedKeys(database)).length, 1);
  assert.equal(new Set(rings.map((ring) => ring.signing().kid)).size, 1);
});

test("a new key is published 10 minutes before it signs", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(ROTATION_LEAD_MS);
  assert.deepEqual(kids(ring), [before, kid]);
  ringing.nowMs = START_MS + 10 * MINUTE_MS - 1;
  assert.equal(ring.signing().kid, before);
  ringing.nowMs = START_MS + 10 * MINUTE_MS;
  assert.equal(ring.signing().kid, kid);
});

test("a replaced key stays published until its last token has expired", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(ROTATION_LEAD_MS);
  // Its last token is signed a moment before the other key takes over.
  const lastExpiryMs = START_MS + ROTATION_LEAD_MS + TTL_MS;
  ringing.nowMs = lastExpiryMs;
  await ring.refresh();
  assert.ok(ring.find(before));
  ringing.nowMs = lastExpiryMs + 5000;
  assert.equal(ring.find(before), undefined);
  assert.deepEqual(kids(ring), [kid]);
  await ring.refresh();
  assert.deepEqual((await storedKeys(ringing.database)).map((key) => key.kid), [kid]);
});

test("a clock that is ahead for a while removes no key whose tokens are still valid", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const before = ring.signing().kid;
  await ring.rotate(0);
  ringing.cautiousMs = START_MS;
  ringing.nowMs = START_MS + 24 * TTL_MS;
  await ring.refresh();
  ringing.nowMs = START_MS;
  assert.ok(ring.find(before));
  assert.ok((await ringing.open()).find(before));
});

test("a key made without a delay signs at once, and the one before still verifies", async (t) => {
  const { open } = await setUp(t);
  const ring = await open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(0);
  assert.equal(ring.signing().kid, kid);
  assert.ok(ring.find(before));
});

test("a key made without a delay signs until the time at which a waiting key starts", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const waiting = await ring.rotate(ROTATION_LEAD_MS);
  ringing.nowMs += MINUTE_MS;
  const atOnce = await ring.rotate(0);
  assert.equal(ring.signing().kid, atOnce.kid);
  ringing.nowMs = START_MS + ROTATION_LEAD_MS;
  assert.equal(ring.signing().kid, waiting.kid);
});

test("withdrawing the signing key removes it, and a new key signs at once", async (t) => {
  const { open, database } = await setUp(t);
  const ring = await open();
  const { kid } = ring.signing();
  assert.equal(await ring.withdraw(kid), true);
  assert.notEqual(ring.signing().kid, kid);
  assert.equal(ring.find(kid), undefined);
  assert.deepEqual(kids(ring), [ring.signing().kid]);
  assert.deepEqual((await storedKeys(database)).map((key) => key.kid), kids(ring));
});

test("withdrawing the key that signs never makes an older key sign again", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const old = ring.signing().kid;
  ringing.nowMs += MINUTE_MS;
  const { kid } = await ring.rotate(0);
  ringing.nowMs += MINUTE_MS;
  await ring.withdraw(kid);
  assert.ok(![old, kid].includes(ring.signing().kid));
  assert.ok(ring.find(old), "its tokens stay valid");
});

test("withdrawing a key that does not sign yet leaves the signing key as it was", async (t) => {
  const { open } = await setUp(t);
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
  const { open, database } = await setUp(t);
  const ring = await open();
  const { kid } = ring.signing();
  assert.equal(await ring.withdraw("k0", BY), false);
  assert.equal(ring.signing().kid, kid);
  assert.deepEqual(await listAudit(database), []);
});

test("the audit says who rotates and withdraws keys, and leaves out the first key", async (t) => {
  const { open, database } = await setUp(t);
  const ring = await open();
  const { kid } = await ring.rotate(0, BY);
  await ring.withdraw(kid, BY);
  assert.deepEqual(await listAudit(database), [
    { actor: "u1", action: "key.rotate", target: kid },
    { actor: "u1", action: "key.withdraw", target: kid },
  ]);
});

test("of two processes that withdraw a key at once, one does so and is audited", async (t) => {
  const { open, database } = await setUp(t);
  const rings = await Promise.all([open(), open()]);
  const kid = rings[0].signing().kid;
  const withdrawn = await Promise.all(rings.map((ring) => ring.withdraw(kid, BY)));
  assert.deepEqual(withdrawn.toSorted(), [false, true]);
  assert.equal((await listAudit(database)).length, 1);
  assert.equal((await storedKeys(database)).length, 1, "the successor");
});

test("another process follows a rotation and a withdrawal when it refreshes", async (t) => {
  const { open } = await setUp(t);
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
  const { open } = await setUp(t);
  const [first, second] = [await open(), await open()];
  const { kid } = await first.rotate(0);
  assert.equal(await second.withdraw(kid), true);
  await first.refresh();
  assert.equal(first.find(kid), undefined);
});

for (const alg of ["ES256", "RS256", "EdDSA"] as const) {
  test(`any process verifies tokens of an ${alg} key, and publishes no private part`, async (t) => {
    const { open } = await setUp(t);
    const ring = await open({ alg });
    const token = signJwt("at+jwt", { sub: "u1" }, ring.signing());
    const other = await open();
    assert.deepEqual(verifyJwt(token, "at+jwt", other.find), { sub: "u1" });
    const [key] = other.published();
    assert.equal(key?.jwk["alg"], alg);
    assert.deepEqual(["d", "p", "q", "dp", "dq", "qi", "k"].filter((name) => name in key.jwk), []);
  });
}

test("another signing algorithm is used for new keys; existing keys keep theirs", async (t) => {
  const { open } = await setUp(t);
  const old = await open({ alg: "RS256" });
  const token = signJwt("at+jwt", { sub: "u1" }, old.signing());
  const ring = await open({ alg: "EdDSA" });
  assert.equal(ring.signing().alg, "RS256");
  await ring.rotate(0);
  assert.equal(ring.signing().alg, "EdDSA");
  assert.deepEqual(verifyJwt(token, "at+jwt", ring.find), { sub: "u1" });
});

test("private keys are stored encrypted, and only the same secret key decrypts them", async (t) => {
  const { open, database } = await setUp(t);
  const key = randomBytes(32);
  const ring = await open({ key });
  await ring.rotate(0);
  for (const stored of await storedKeys(database)) assert.doesNotMatch(stored.private, /PRIVATE/);
  assert.equal((await open({ key })).signing().kid, ring.signing().kid);
  await assert.rejects(open({ key: randomBytes(32) }), SealError);
  await assert.rejects(open(), SealError);
});

test("a process that cannot decrypt a new key obeys withdrawals and does not sign", async (t) => {
  const ringing = await setUp(t);
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const ring = await ringing.open({ key: first });
  const { kid: oldest } = ring.signing();
  const { kid } = await ring.rotate(0);
  const other = await ringing.open({ keys: [second, first] });
  await other.rotate(0);
  await assert.rejects(ring.refresh(), SealError);
  assert.throws(() => ring.signing(), { name: "UnavailableError" });
  assert.deepEqual(kids(ring), [oldest, kid], "the older keys still verify");
  await other.withdraw(kid);
  await assert.rejects(ring.refresh(), SealError);
  assert.deepEqual([kids(ring), ring.find(kid)], [[oldest], undefined]);
  assert.equal(ring.findSigning(), undefined);
});

test("a key stays published as long as the longest-lived tokens of any process", async (t) => {
  const ringing = await setUp(t);
  const long = await ringing.open({ ttlMs: 24 * TTL_MS });
  const before = long.signing().kid;
  const short = await ringing.open({ ttlMs: MINUTE_MS });
  const { kid } = await short.rotate(0);
  await long.refresh(); // signs with the new key, too, and for longer than its maker knew
  await short.rotate(0);
  ringing.nowMs = START_MS + 24 * TTL_MS;
  for (const ring of [short, long]) {
    await ring.refresh();
    assert.deepEqual(kids(ring).slice(0, 2), [before, kid]);
  }
});

test("a process that lengthens the life of one key does not shorten another's", async (t) => {
  const ringing = await setUp(t);
  const before = (await ringing.open({ ttlMs: 24 * TTL_MS })).signing().kid;
  await (await ringing.open({ ttlMs: MINUTE_MS })).rotate(0);
  const ring = await ringing.open();
  ringing.nowMs = START_MS + 12 * TTL_MS;
  await ring.refresh();
  assert.equal(kids(ring)[0], before);
});

test("a clock that was set back does not leave the service without a key", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const { kid } = ring.signing();
  ringing.nowMs = START_MS - MINUTE_MS;
  assert.equal(ring.signing().kid, kid);
  assert.ok(ring.find(kid));
});

for (const [when, leadMs] of [["without", 0], ["with", ROTATION_LEAD_MS]] as const) {
  test(`a key made ${when} a delay after the clock was set back signs, and goes on`, async (t) => {
    const ringing = await setUp(t);
    const ring = await ringing.open();
    const { kid } = ring.signing();
    ringing.nowMs = START_MS - 24 * TTL_MS;
    const made = await ring.rotate(leadMs);
    assert.equal(ring.signing().kid, leadMs === 0 ? made.kid : kid);
    ringing.nowMs += leadMs;
    assert.equal(ring.signing().kid, made.kid);
    ringing.nowMs = START_MS;
    assert.deepEqual([ring.signing().kid, kids(ring)], [made.kid, [made.kid]]);
  });
}

test("withdrawing the only key after the clock was set back makes a successor", async (t) => {
  const ringing = await setUp(t);
  const ring = await ringing.open();
  const { kid } = ring.signing();
  ringing.nowMs = START_MS - MINUTE_MS;
  assert.equal(await ring.withdraw(kid), true);
  assert.notEqual(ring.signing().kid, kid);
  assert.equal(ring.published().length, 1);
});

test("other work goes on while an RSA key is made", async () => {
  let isMade = false;
  const made = generatePrivateKey("RS256").then(() => {
    isMade = true;
  });
  await nextTurn();
  assert.equal(isMade, false);
  await made;
});
