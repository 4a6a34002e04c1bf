import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { generatePrivateKey, importKey, parseJwt } from "../../src/base/jwt.ts";
import { newApp } from "../../src/oauth/app.ts";
import { verifyAssertion } from "../../src/oauth/client_assertion.ts";
import { useAssertion } from "../../src/store/client_assertions.ts";
import { purge } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";
import { signJwt } from "../helpers/jwt.ts";
import { NEVER } from "../helpers/never.ts";

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

/** Verifies an assertion with these claims at this time. */
function verify(change: object, nowMs = NOW_S * 1000) {
  const claims = { iss: APP.id, sub: APP.id, aud: ISSUER, exp: NOW_S + 60, jti: "j1", ...change };
  const jwt = parseJwt(signJwt("JWT", claims, KEY));
  assert.ok(jwt);
  return verifyAssertion(jwt, APP, ISSUER, nowMs);
}

describe("verifyAssertion() allows clocks to differ by a minute, but not for exp:", () => {
  const table: [what: string, change: object, isGood: boolean][] = [
    ["an exp in the future", { exp: NOW_S + 0.001 }, true],
    ["an exp that has passed", { exp: NOW_S }, false],
    ["an exp five minutes ahead", { exp: NOW_S + 300 }, true],
    ["an exp more than five minutes ahead", { exp: NOW_S + 300.001 }, false],
    ["an iat a minute ahead", { iat: NOW_S + 60 }, true],
    ["an iat more than a minute ahead", { iat: NOW_S + 60.001 }, false],
    ["an iat less than six minutes ago", { iat: NOW_S - 359.999 }, true],
    ["an iat six minutes ago", { iat: NOW_S - 360 }, false],
    ["an nbf a minute ahead", { nbf: NOW_S + 60 }, true],
    ["an nbf more than a minute ahead", { nbf: NOW_S + 60.001 }, false],
    ["an nbf long ago", { nbf: 0 }, true],
  ];
  for (const [what, change, isGood] of table) {
    const name = `${isGood ? "accepts" : "refuses"} ${what}`;
    test(name, () => assert.equal(verify(change) !== undefined, isGood));
  }
});

test("a used assertion is remembered for longer than it is valid, and then purged", async (t) => {
  const database = openDatabase(t);
  const proof = verify({});
  assert.ok(proof);
  assert.equal(await useAssertion(database, APP.id, proof), true);
  const endMs = (NOW_S + 60) * 1000;
  assert.ok(verify({}, endMs - 1));
  assert.equal(verify({}, endMs), undefined);
  const purgeAt = (nowMs: number) =>
    purge(database, RETENTION, nowMs, NEVER);
  await purgeAt(endMs + 90_000); // by a clock that is ahead
  assert.equal(await useAssertion(database, APP.id, proof), false);
  await purgeAt(proof.untilMs);
  assert.equal(await useAssertion(database, APP.id, proof), true);
});

test("a jti is remembered for each app separately", async (t) => {
  const database = openDatabase(t);
  const proof = { jti: "j1", untilMs: 1 };
  assert.equal(await useAssertion(database, "a1", proof), true);
  assert.equal(await useAssertion(database, "a2", proof), true);
  assert.equal(await useAssertion(database, "a1", proof), false);
});

