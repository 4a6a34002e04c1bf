import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import { generatePrivateKey, importKey } from "../../src/base/jwt.ts";
import { SealError } from "../../src/base/seal.ts";
import { sha256 } from "../../src/base/secret.ts";
import { UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { accessTokenClaims } from "../../src/oauth/claims.ts";
import { insertUser } from "../../src/store/users.ts";
import { signJwt } from "../helpers/jwt.ts";
import { input, key, NOW_MS, open, TTL_MS } from "./bearer_stage.ts";

const otherKey = async () => importKey("k1", "ES256", await generatePrivateKey("ES256"));

test("verify() returns the caller of a valid token", async (t) => {
  const { bearer, issue } = await open(t);
  const { token, grantId } = issue();
  const caller = await bearer.verify(token);
  assert.equal(caller?.sub, "u1");
  assert.equal(caller.kind, "user");
  assert.equal(caller.clientId, "a1");
  assert.equal(caller.grantId, grantId);
  assert.deepEqual(caller.scopes, ["consumer", "orders"]);
});

test("a token that was verified before is accepted until it expires", async (t) => {
  const { bearer, issue, clock } = await open(t);
  const { token, expiresAtMs } = issue();
  assert.ok(await bearer.verify(token));
  clock.nowMs = expiresAtMs - 1;
  assert.ok(await bearer.verify(token));
  clock.nowMs = expiresAtMs;
  assert.equal(await bearer.verify(token), undefined);
});

test("a token that was verified before is refused once its key is withdrawn", async (t) => {
  const { bearer, issue, kids } = await open(t);
  const { token } = issue();
  assert.ok(await bearer.verify(token));
  kids.delete("k1");
  assert.equal(await bearer.verify(token), undefined);
});

describe("a token whose key this process does not know", () => {
  const made = (ms: number) => ({ ...key, kid: `${idBound("k", ms)}000` });

  test("is accepted at once where another process has just made the key", async (t) => {
    const { bearer, issue, kids, onRefresh } = await open(t);
    const young = made(NOW_MS - 50_000);
    const refreshed = onRefresh(async () => void kids.add(young.kid));
    const { token } = issue({}, young);
    const callers = await Promise.all([token, token, token].map(bearer.verify));
    assert.deepEqual(callers.map((caller) => caller?.sub), ["u1", "u1", "u1"]);
    await bearer.verify(token);
    assert.ok(refreshed.mock.callCount() <= 3);
  });

  test("is refused where nobody made the key, or it cannot be decrypted here", async (t) => {
    const { bearer, issue, onRefresh } = await open(t);
    const { token } = issue({}, made(NOW_MS));
    onRefresh(async () => {});
    assert.equal(await bearer.verify(token), undefined);
    onRefresh(() => Promise.reject(new SealError("k1")));
    assert.equal(await bearer.verify(token), undefined);
  });

  test("causes no database read where the key cannot be new", async (t) => {
    const { bearer, issue } = await open(t); // its refresh() rejects
    for (const ms of [NOW_MS - 60_000, NOW_MS + 60_000]) {
      assert.equal(await bearer.verify(issue({}, made(ms)).token), undefined);
    }
    const signedByAnother = signJwt("at+jwt", {}, { ...await otherKey(), kid: "k1" });
    assert.equal(await bearer.verify(signedByAnother), undefined);
  });

  test("fails with UnavailableError where the database cannot be read", async (t) => {
    const { bearer, issue, onRefresh } = await open(t);
    onRefresh(() => Promise.reject(new UnavailableError("locked")));
    await assert.rejects(bearer.verify(issue({}, made(NOW_MS)).token), UnavailableError);
  });
});

for (const target of ["jti", "grantId", "sub", "clientId"] as const) {
  test(`a token that was verified before is refused once its ${target} is revoked`, async (t) => {
    const { bearer, issue, revoke } = await open(t);
    const { token } = issue();
    const caller = await bearer.verify(token);
    assert.ok(caller);
    await revoke(caller[target]);
    assert.equal(await bearer.verify(token), undefined);
  });
}

test("revoking one token leaves another token of the same grant valid", async (t) => {
  const { bearer, issue, revoke } = await open(t);
  const { token, grantId } = issue();
  const second = issue({ grantId }).token;
  await revoke((await bearer.verify(token))?.jti ?? "");
  assert.equal(await bearer.verify(token), undefined);
  assert.ok(await bearer.verify(second));
});

describe("verify() refuses", () => {
  type Issue = Awaited<ReturnType<typeof open>>["issue"];
  const table: [what: string, make: (issue: Issue) => string][] = [
    ["an empty token", () => ""],
    ["text that is not a token", () => "secret"],
    ["another issuer's token", (issue) => issue({ issuer: "https://evil.example" }).token],
    ["a token of another type, signed with the same key", () =>
      signJwt("JWT", accessTokenClaims(input()).claims, key)],
    ["a token with an altered signature", (issue) =>
      issue().token.replace(/.(?=.$)/, (end) => end === "A" ? "B" : "A")],
    ["a refresh token", () => `${newId("g", NOW_MS)}${"x".repeat(43)}`],
  ];
  for (const [what, make] of table) {
    test(what, async (t) => {
      const { bearer, issue } = await open(t);
      assert.equal(await bearer.verify(make(issue)), undefined);
    });
  }

  test("a token that another key has signed, under our key's id or an unknown one", async (t) => {
    const { bearer } = await open(t);
    const other = await otherKey();
    const token = signJwt("at+jwt", accessTokenClaims(input()).claims, other);
    assert.equal(await bearer.verify(token), undefined);
    const unknown = signJwt("at+jwt", accessTokenClaims(input()).claims, { ...other, kid: "k2" });
    assert.equal(await bearer.verify(unknown), undefined);
  });
});

test("a token whose claims were altered after it was verified is refused", async (t) => {
  const { bearer, issue } = await open(t);
  const { token } = issue();
  assert.ok(await bearer.verify(token));
  const [header, , signature] = token.split(".");
  const claims = { ...accessTokenClaims(input()).claims, scope: "backend" };
  const forged = Buffer.from(JSON.stringify(claims)).toString("base64url");
  assert.equal(await bearer.verify(`${header}.${forged}.${signature}`), undefined);
});

for (const [ttlMs, cachedMs] of [[TTL_MS / 4, TTL_MS / 4], [4 * TTL_MS, TTL_MS]] as const) {
  test(`with a TTL of ${ttlMs} ms a personal token is cached for ${cachedMs} ms`, async (t) => {
    const { bearer, clock, database, tokens } = await open(t, ttlMs);
    const id = newId("g", NOW_MS);
    const token = tokens.makePersonalToken(id);
    await database.write([
      insertUser({ id: "u1", username: "one", phc: "", scopes: [], createdAtMs: NOW_MS }),
      sql`INSERT INTO grants
          (id, app, user, type, name, scopes, token, refreshUntilMs, accessUntilMs)
        VALUES (${id}, 'personal', 'u1', 'personal', 'script', '[]', ${sha256(token)}, 0,
          ${NOW_MS * 2})`,
    ]);
    assert.ok(await bearer.verify(token));
    await database.write([sql`UPDATE grants SET revokedAtMs = ${NOW_MS}`]); // not reported here
    clock.nowMs += cachedMs - 1;
    assert.ok(await bearer.verify(token));
    clock.nowMs++;
    assert.equal(await bearer.verify(token), undefined);
  });
}

test("between 5,000 and 10,000 personal tokens are cached", async (t) => {
  const { bearer, database, tokens } = await open(t);
  let reads = 0;
  const row = { sub: "u1", scopes: "[]", expiresAtMs: NOW_MS * 2 };
  Object.assign(database, { query: async () => (reads++, [row]) });
  const handle = { grantId: newId("g", NOW_MS), hash: sha256("") };
  Object.assign(tokens, { parsePersonalToken: () => handle }); // making so many takes a second
  for (let count = 0; count <= 10_000; count++) assert.ok(await bearer.verify(`gpat_${count}`));
  for (const count of [5_000, 10_000]) await bearer.verify(`gpat_${count}`);
  assert.equal(reads, 10_001);
  await bearer.verify("gpat_0");
  assert.equal(reads, 10_002, "the oldest was evicted");
});
