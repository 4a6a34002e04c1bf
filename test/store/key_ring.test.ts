import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { generatePrivateKey, verifyJwt } from "../../src/base/jwt.ts";
import { SealError } from "../../src/base/seal.ts";
import { ROTATION_LEAD_MS } from "../../src/store/key_ring.ts";
import { signJwt } from "../helpers/jwt.ts";
import { kids, MINUTE_MS, openStage, START_MS, storedKeys, TTL_MS } from "./key_ring_stage.ts";

test("a key ring on an empty database makes one key, which does not expire", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const { kid } = ring.signing();
  assert.deepEqual(kids(ring), [kid]);
  assert.deepEqual(ring.published().map((key) => key.publishedUntilMs), [Infinity]);
  stage.nowMs += 365 * 24 * TTL_MS;
  await ring.refresh();
  assert.deepEqual([ring.signing().kid, kids(ring)], [kid, [kid]]);
});

test("a process whose clock is behind uses the first key that another has made", async (t) => {
  const { open } = openStage(t);
  const [ahead, behind] = [await open({ aheadMs: 200 }), await open()];
  assert.deepEqual(kids(behind), kids(ahead));
  assert.equal(behind.signing().kid, ahead.signing().kid);
});

test("of many processes that start at once, only one makes the first key", async (t) => {
  const { database, open } = openStage(t);
  const rings = await Promise.all(Array.from({ length: 4 }, () => open()));
  assert.equal((await storedKeys(database)).length, 1);
  assert.equal(new Set(rings.map((ring) => ring.signing().kid)).size, 1);
});

test("a new key is published 10 minutes before it signs", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(ROTATION_LEAD_MS);
  assert.deepEqual(kids(ring), [before, kid]);
  stage.nowMs = START_MS + 10 * MINUTE_MS - 1;
  assert.equal(ring.signing().kid, before);
  stage.nowMs = START_MS + 10 * MINUTE_MS;
  assert.equal(ring.signing().kid, kid);
});

test("a replaced key stays published until its last token has expired", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(ROTATION_LEAD_MS);
  // Its last token is signed a moment before the other key takes over.
  const lastExpiryMs = START_MS + ROTATION_LEAD_MS + TTL_MS;
  stage.nowMs = lastExpiryMs;
  await ring.refresh();
  assert.ok(ring.find(before));
  stage.nowMs = lastExpiryMs + 5000;
  assert.equal(ring.find(before), undefined);
  assert.deepEqual(kids(ring), [kid]);
  await ring.refresh();
  assert.deepEqual((await storedKeys(stage.database)).map((key) => key.kid), [kid]);
});

test("a clock that is ahead for a while removes no key whose tokens are still valid", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const before = ring.signing().kid;
  await ring.rotate(0);
  stage.cautiousMs = START_MS;
  stage.nowMs = START_MS + 24 * TTL_MS;
  await ring.refresh();
  stage.nowMs = START_MS;
  assert.ok(ring.find(before));
  assert.ok((await stage.open()).find(before));
});

test("a key made without a delay signs at once, and the one before still verifies", async (t) => {
  const { open } = openStage(t);
  const ring = await open();
  const before = ring.signing().kid;
  const { kid } = await ring.rotate(0);
  assert.equal(ring.signing().kid, kid);
  assert.ok(ring.find(before));
});

test("a key made without a delay signs until the time at which a waiting key starts", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const waiting = await ring.rotate(ROTATION_LEAD_MS);
  stage.nowMs += MINUTE_MS;
  const atOnce = await ring.rotate(0);
  assert.equal(ring.signing().kid, atOnce.kid);
  stage.nowMs = START_MS + ROTATION_LEAD_MS;
  assert.equal(ring.signing().kid, waiting.kid);
});

for (const alg of ["ES256", "RS256", "EdDSA"] as const) {
  test(`any process verifies tokens of an ${alg} key, and publishes no private part`, async (t) => {
    const { open } = openStage(t);
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
  const { open } = openStage(t);
  const old = await open({ alg: "RS256" });
  const token = signJwt("at+jwt", { sub: "u1" }, old.signing());
  const ring = await open({ alg: "EdDSA" });
  assert.equal(ring.signing().alg, "RS256");
  await ring.rotate(0);
  assert.equal(ring.signing().alg, "EdDSA");
  assert.deepEqual(verifyJwt(token, "at+jwt", ring.find), { sub: "u1" });
});

test("private keys are stored encrypted, and only the same secret key decrypts them", async (t) => {
  const { open, database } = openStage(t);
  const key = randomBytes(32);
  const ring = await open({ key });
  await ring.rotate(0);
  for (const stored of await storedKeys(database)) assert.doesNotMatch(stored.private, /PRIVATE/);
  assert.equal((await open({ key })).signing().kid, ring.signing().kid);
  await assert.rejects(open({ key: randomBytes(32) }), SealError);
  await assert.rejects(open(), SealError);
});

test("a process that cannot decrypt a new key obeys withdrawals and does not sign", async (t) => {
  const stage = openStage(t);
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const ring = await stage.open({ key: first });
  const { kid: oldest } = ring.signing();
  const { kid } = await ring.rotate(0);
  const other = await stage.open({ keys: [second, first] });
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
  const stage = openStage(t);
  const long = await stage.open({ ttlMs: 24 * TTL_MS });
  const before = long.signing().kid;
  const short = await stage.open({ ttlMs: MINUTE_MS });
  const { kid } = await short.rotate(0);
  await long.refresh(); // signs with the new key, too, and for longer than its maker knew
  await short.rotate(0);
  stage.nowMs = START_MS + 24 * TTL_MS;
  for (const ring of [short, long]) {
    await ring.refresh();
    assert.deepEqual(kids(ring).slice(0, 2), [before, kid]);
  }
});

test("a process that lengthens the life of one key does not shorten another's", async (t) => {
  const stage = openStage(t);
  const before = (await stage.open({ ttlMs: 24 * TTL_MS })).signing().kid;
  await (await stage.open({ ttlMs: MINUTE_MS })).rotate(0);
  const ring = await stage.open();
  stage.nowMs = START_MS + 12 * TTL_MS;
  await ring.refresh();
  assert.equal(kids(ring)[0], before);
});

test("a clock that was set back does not leave the service without a key", async (t) => {
  const stage = openStage(t);
  const ring = await stage.open();
  const { kid } = ring.signing();
  stage.nowMs = START_MS - MINUTE_MS;
  assert.equal(ring.signing().kid, kid);
  assert.ok(ring.find(kid));
});

for (const [when, leadMs] of [["without", 0], ["with", ROTATION_LEAD_MS]] as const) {
  test(`a key made ${when} a delay after the clock was set back signs, and goes on`, async (t) => {
    const stage = openStage(t);
    const ring = await stage.open();
    const { kid } = ring.signing();
    stage.nowMs = START_MS - 24 * TTL_MS;
    const made = await ring.rotate(leadMs);
    assert.equal(ring.signing().kid, leadMs === 0 ? made.kid : kid);
    stage.nowMs += leadMs;
    assert.equal(ring.signing().kid, made.kid);
    stage.nowMs = START_MS;
    assert.deepEqual([ring.signing().kid, kids(ring)], [made.kid, [made.kid]]);
  });
}

test("other work goes on while an RSA key is made", async () => {
  let isMade = false;
  const made = generatePrivateKey("RS256").then(() => {
    isMade = true;
  });
  await nextTurn();
  assert.equal(isMade, false);
  await made;
});
