import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { generatePrivateKey, importKey, parseJwt } from "../../src/base/jwt.ts";
import { newApp } from "../../src/oauth/app.ts";
import { verifyAssertion } from "../../src/oauth/client_assertion.ts";
import { useAssertion } from "../../src/store/client_assertions.ts";
import { purge } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";
import { signJwt } from "../helpers/jwt.ts";

const NOW_S = Date.UTC(2040, 0, 1) / 1000;
const ISSUER = "https://gatepost.example";
const KEY = importKey("k1", "EdDSA", await generatePrivateKey("EdDSA"));
const RETENTION = { eventsMs: 1, auditMs: 1 };

const { x } = KEY.publicKey.export({ format: "jwk" });
const APP = newApp({
  name: "Robot",
  url: "https://robot.example/",
  type: "confidential",
  scopes: [],
  jwks: { keys: [{ kty: "OKP", crv: "Ed25519", x, kid: "k1" }] },
}, { id: "arobot", createdAtMs: 1 });

/** What an assertion of these claims proves at a time. */
function verify(change: object, nowMs = NOW_S * 1000) {
  const claims = { iss: APP.id, sub: APP.id, aud: ISSUER, exp: NOW_S + 60, jti: "j1", ...change };
  const jwt = parseJwt(signJwt("JWT", claims, KEY));
  assert.ok(jwt);
  return verifyAssertion(jwt, APP, ISSUER, nowMs);
}

describe("verifyAssertion() takes exp as it is; clocks may else differ by a minute:", () => {
  const table: [what: string, change: object, isGood: boolean][] = [
    ["exp to come", { exp: NOW_S + 0.001 }, true],
    ["exp that has come", { exp: NOW_S }, false],
    ["exp five minutes ahead", { exp: NOW_S + 300 }, true],
    ["exp more than five minutes ahead", { exp: NOW_S + 300.001 }, false],
    ["iat a minute ahead", { iat: NOW_S + 60 }, true],
    ["iat more than a minute ahead", { iat: NOW_S + 60.001 }, false],
    ["iat less than six minutes ago", { iat: NOW_S - 359.999 }, true],
    ["iat six minutes ago", { iat: NOW_S - 360 }, false],
    ["nbf a minute ahead", { nbf: NOW_S + 60 }, true],
    ["nbf more than a minute ahead", { nbf: NOW_S + 60.001 }, false],
    ["nbf long ago", { nbf: 0 }, true],
  ];
  for (const [what, change, isGood] of table) {
    test(what, () => assert.equal(verify(change) !== undefined, isGood));
  }
});

test("a used assertion is remembered for longer than it is good, and then purged", async (t) => {
  const database = openDatabase(t);
  const proof = verify({});
  assert.ok(proof);
  assert.equal(await useAssertion(database, APP.id, proof), true);
  const endMs = (NOW_S + 60) * 1000;
  assert.ok(verify({}, endMs - 1));
  assert.equal(verify({}, endMs), undefined);
  const purgeAt = (nowMs: number) =>
    purge(database, RETENTION, nowMs, new AbortController().signal);
  await purgeAt(endMs + 90_000); // by a clock that is ahead
  assert.equal(await useAssertion(database, APP.id, proof), false);
  await purgeAt(proof.untilMs);
  assert.equal(await useAssertion(database, APP.id, proof), true);
});

test("a jti is another app's own", async (t) => {
  const database = openDatabase(t);
  const proof = { jti: "j1", untilMs: 1 };
  assert.equal(await useAssertion(database, "a1", proof), true);
  assert.equal(await useAssertion(database, "a2", proof), true);
  assert.equal(await useAssertion(database, "a1", proof), false);
});

