import assert from "node:assert/strict";
import { test } from "node:test";
import { createIssuerKeys, fetchKeys } from "../../src/api/issuer_keys.ts";
import type { FetchedDocument } from "../../src/outbound/fetch_document.ts";
import { newForeignKey } from "../helpers/foreign_issuer.ts";

const URI = "https://id.example.com/keys";
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const [one, two] = [newForeignKey("k1"), newForeignKey("k2")];

function open() {
  const stage = {
    nowMs: Date.UTC(2026, 10, 23),
    fetches: 0,
    respond: (): FetchedDocument | Promise<FetchedDocument> => publish([one.jwk]),
  };
  const find = createIssuerKeys({
    fetchDocument: async () => {
      stage.fetches++;
      return await stage.respond();
    },
    now: () => stage.nowMs,
  });
  const has = async (kid = "k1", uri = URI, changes = 1) =>
    await find(uri, kid, changes) !== undefined;
  return { stage, find, has };
}

function publish(keys: readonly unknown[], freshMs = 10 * MINUTE_MS): FetchedDocument {
  return { document: { keys }, freshMs };
}

test("keys are fetched once while they are fresh, and again after that", async () => {
  const { stage, has } = open();
  assert.deepEqual(await Promise.all([has(), has(), has()]), [true, true, true]);
  stage.nowMs += 10 * MINUTE_MS - 1;
  assert.equal(await has(), true);
  assert.equal(stage.fetches, 1);
  stage.nowMs += 1;
  stage.respond = () => publish([two.jwk]);
  assert.equal(await has(), false); // withdrawn
  assert.equal(await has("k2"), true);
  assert.equal(stage.fetches, 2);
});

test("at most four keys with one kid are tried for a token", async () => {
  const { stage, find } = open();
  const keys = Array.from({ length: 6 }, () => newForeignKey("k1").jwk);
  stage.respond = () => publish([...keys, two.jwk]);
  assert.equal((await find(URI, "k1", 1))?.keys.length, 4);
  assert.equal((await find(URI, "k2", 1))?.keys.length, 1);
});

test("an unknown kid causes at most one fetch a minute", async () => {
  const { stage, has } = open();
  await has();
  assert.equal(await has("k2"), false); // not there yet
  stage.respond = () => publish([one.jwk, two.jwk]);
  stage.nowMs += MINUTE_MS - 1;
  assert.equal(await has("k2"), false);
  assert.equal(stage.fetches, 2);
  stage.nowMs += 1;
  assert.equal(await has("k2"), true);
  for (let n = 0; n < 100; n++) assert.equal(await has(`made up ${n}`), false);
  assert.equal(stage.fetches, 3);
});

test("a new key is found at once, however recently the others were fetched", async () => {
  const { stage, has } = open();
  await has();
  stage.respond = () => publish([one.jwk, two.jwk]);
  assert.equal(await has("k2"), true);
  assert.equal(stage.fetches, 2);
});

test("after a change of issuers keys are fetched again, 10 s after the last fetch", async () => {
  const { stage, find, has } = open();
  assert.equal(await has(), true);
  stage.respond = () => publish([two.jwk]);
  stage.nowMs += 10_000 - 1;
  const found = await find(URI, "k1", 2); // within 10 s of the last fetch
  assert.equal(found?.untilMs, stage.nowMs + 10_000);
  stage.nowMs += 1;
  assert.equal(await has("k1", URI, 2), false);
  assert.equal(await has("k2", URI, 2), true);
  assert.equal(stage.fetches, 2);
});

test("known keys serve for another day while fetches fail, and wait for no fetch", async () => {
  const { stage, find, has } = open();
  await has();
  stage.respond = () => ({ reason: "timeout" });
  stage.nowMs += 10 * MINUTE_MS;
  const found = await find(URI, "k1", 1);
  assert.equal(found?.untilMs, stage.nowMs + MINUTE_MS);
  assert.equal(stage.fetches, 2);
  stage.nowMs += MINUTE_MS;
  const hanging = Promise.withResolvers<FetchedDocument>();
  stage.respond = () => hanging.promise;
  assert.equal(await has(), true); // though the fetch has not ended
  assert.equal(stage.fetches, 3);
  hanging.resolve({ reason: "timeout" });
  stage.nowMs += DAY_MS - 2 * MINUTE_MS;
  assert.equal(await has(), true);
  await new Promise(setImmediate); // the fetch in the background has ended
  stage.nowMs += MINUTE_MS;
  stage.respond = () => ({ reason: "timeout" });
  assert.equal(await has(), false);
  stage.respond = () => publish([one.jwk]);
  assert.equal(await has(), false);
  stage.nowMs += MINUTE_MS;
  assert.equal(await has(), true);
});

test("keys that were fetched before the clock was set back are fetched again", async () => {
  const { stage, has } = open();
  await has();
  stage.nowMs -= 3 * DAY_MS;
  stage.respond = () => publish([two.jwk]);
  assert.equal(await has(), false); // withdrawn
  assert.equal(await has("k2"), true);
  assert.equal(stage.fetches, 2);
});

test("an unknown kid causes a fetch again after the clock was set back", async () => {
  const { stage, find, has } = open();
  await has();
  stage.nowMs += MINUTE_MS;
  stage.respond = () => ({ reason: "timeout" });
  assert.equal(await find(URI, "k1", 2) !== undefined, true); // issuers have been changed
  stage.nowMs -= DAY_MS;
  stage.respond = () => publish([one.jwk, two.jwk]);
  assert.equal(await has("k2", URI, 2), true);
});

test("where no keys were ever fetched, the fetch is repeated after ten seconds", async () => {
  const { stage, has } = open();
  stage.respond = () => ({ reason: "refused" });
  assert.equal(await has(), false);
  stage.nowMs += 9_999;
  assert.equal(await has(), false);
  assert.equal(stage.fetches, 1);
  stage.nowMs += 1;
  stage.respond = () => publish([one.jwk]);
  assert.equal(await has(), true);
});

test("a fetch from one address does not delay the keys of another", async () => {
  const { stage, has } = open();
  const hanging = Promise.withResolvers<FetchedDocument>();
  stage.respond = () => hanging.promise;
  let isDone = false;
  const waiting = has("k1", "https://slow.example/keys").finally(() => isDone = true);
  stage.respond = () => publish([one.jwk]);
  assert.equal(await has(), true);
  assert.equal(isDone, false);
  hanging.resolve({ reason: "timeout" });
  assert.equal(await waiting, false);
});

const ODD: readonly (readonly [what: string, key: unknown])[] = [
  ["a key for encryption", { ...two.jwk, use: "enc" }],
  ["a key without kid", { ...two.jwk, kid: undefined }],
  ["a kid that is not a string", { ...two.jwk, kid: 7 }],
  ["an algorithm that does not fit", { ...two.jwk, alg: "RS256" }],
  ["an unknown algorithm", { ...two.jwk, alg: "PS256" }],
  ["a symmetric key", { kty: "oct", kid: "k2", k: "AAAA" }],
  ["a private key", { ...two.jwk, d: two.privateKey.export({ format: "jwk" }).d }],
  ["a point off the curve", { ...two.jwk, x: two.jwk["y"], y: two.jwk["x"] }],
  ["a short RSA key", { kty: "RSA", kid: "k2", n: "AQAB".repeat(40), e: "AQAB" }],
  ["null", null],
  ["a string", "k2"],
];
for (const [what, key] of ODD) {
  test(`fetchKeys() skips ${what}, and returns the other keys`, async () => {
    const fetched = await fetchKeys(URI, { fetchDocument: async () => publish([key, one.jwk]) });
    assert.ok("keys" in fetched);
    assert.deepEqual([...fetched.keys.keys()], ["k1"]);
  });
}

test("a key without alg has the algorithm of its type", async () => {
  const bare = { ...newForeignKey("k3", "RS256").jwk, alg: undefined, use: undefined };
  const json = JSON.parse(JSON.stringify(bare));
  const fetched = await fetchKeys(URI, { fetchDocument: async () => publish([json]) });
  assert.equal("keys" in fetched && fetched.keys.get("k3")?.[0]?.alg, "RS256");
});
