import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import { generatePrivateKey, importKey } from "../../src/base/jwt.ts";
import { ringOf, signJwt } from "../helpers/jwt.ts";
import { Problem } from "../../src/base/problem.ts";
import { SealError } from "../../src/base/seal.ts";
import { UnavailableError } from "../../src/database/database.ts";
import { type Bearer, bearerToken, createBearer } from "../../src/api/bearer.ts";
import { createTokenIssuer } from "../../src/api/authorization/token_issuer.ts";
import { createIssuerTokens } from "../../src/api/issuer_tokens.ts";
import { sha256 } from "../../src/base/secret.ts";
import { sql } from "../../src/database/sql.ts";
import { createUses } from "../../src/store/uses.ts";
import { accessTokenClaims } from "../../src/oauth/claims.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { insertUser } from "../../src/store/users.ts";
import { openDatabase } from "../helpers/database.ts";
import { sampleRequest } from "../helpers/http_request.ts";

const ISSUER = "https://as.example/base";
const NOW_MS = Date.UTC(2026, 0, 1);
const TTL_MS = 3_600_000;

const key = importKey("k1", "ES256", await generatePrivateKey("ES256"));
const METADATA = "https://as.example/.well-known/oauth-protected-resource/";

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
    const other = importKey("k1", "ES256", await generatePrivateKey("ES256"));
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

test("authenticate() returns the caller of a token that has all the scopes", async (t) => {
  const { bearer, issue } = await open(t);
  const { token } = issue();
  for (const scopes of [[], ["consumer"], ["orders", "consumer"]]) {
    assert.equal((await bearer.authenticate(ask(`Bearer ${token}`), scopes)).sub, "u1");
  }
});

test("without a token: 401 with a challenge that names no error (RFC 6750 §3.1)", async (t) => {
  const { bearer } = await open(t);
  for (const authorization of [undefined, "", "Basic YTpi", "Bearer", "Token x", "xBearer y"]) {
    const problem = await refusal(bearer, authorization, []);
    assert.equal(problem.status, 401);
    assert.equal(
      problem.headers["WWW-Authenticate"],
      `Bearer realm="gatepost", resource_metadata="${METADATA}"`,
    );
    assert.match(problem.message, /in the header Authorization: Bearer <token>\.$/);
  }
});

test("without a token the challenge names the scopes that are needed (RFC 6750 §3)", async (t) => {
  const { bearer } = await open(t);
  assert.equal(
    (await refusal(bearer, undefined, ["orders", "read"])).headers["WWW-Authenticate"],
    `Bearer realm="gatepost", scope="orders read", resource_metadata="${METADATA}"`,
  );
});

test("with a bad token: 401 invalid_token, and nothing of the token in the response", async (t) => {
  const { bearer } = await open(t);
  const problem = await refusal(bearer, "Bearer hunter2.hunter2.hunter2", []);
  assert.equal(problem.status, 401);
  assert.equal(
    problem.headers["WWW-Authenticate"],
    `Bearer realm="gatepost", error="invalid_token", resource_metadata="${METADATA}"`,
  );
  const { headers } = await refusal(bearer, "Bearer hunter2", ["orders"]);
  assert.match(String(headers["WWW-Authenticate"]), /error="invalid_token", scope="orders", /);
  assert.doesNotMatch(JSON.stringify([problem.message, problem.headers, headers]), /hunter2/);
});

test("without a required scope: 403 insufficient_scope, naming all required ones", async (t) => {
  const { bearer, issue } = await open(t);
  const problem = await refusal(bearer, `Bearer ${issue().token}`, ["consumer", "backend"]);
  assert.equal(problem.status, 403);
  assert.equal(
    problem.headers["WWW-Authenticate"],
    'Bearer realm="gatepost", error="insufficient_scope", scope="consumer backend", ' +
      `resource_metadata="${METADATA}"`,
  );
});

test("a scope matches only by its whole name, in the same case", async (t) => {
  const { bearer, issue } = await open(t);
  const { token } = issue({ scopes: ["consumers", "back"] });
  for (const scope of ["consumer", "backend", "back end", "BACK"]) {
    assert.equal((await refusal(bearer, `Bearer ${token}`, [scope])).status, 403, scope);
  }
});

test("the challenge names the metadata of the request's path, without the query", async (t) => {
  const { createFor } = await open(t);
  const bearer = createFor("https://as.example");
  const request = sampleRequest({ path: '/mcp/a"b', query: "x=1" });
  await assert.rejects(async () => bearer.authenticate(request, []), (problem) => {
    assert.ok(problem instanceof Problem);
    assert.match(
      String(problem.headers["WWW-Authenticate"]),
      /="https:\/\/as\.example\/\.well-known\/oauth-protected-resource\/mcp\/a%22b"$/,
    );
    return true;
  });
});

describe("bearerToken() reads (RFC 6750 §2.1, RFC 9110 §11.1)", () => {
  const table: [authorization: string | undefined, token: string | undefined][] = [
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["BEARER   abc  ", "abc"],
    ["Bearer ", ""],
    ["Bearer", undefined],
    ["Bearerabc", undefined],
    ["Basic abc", undefined],
    [" Bearer abc", undefined],
    ["", undefined],
    [undefined, undefined],
  ];
  for (const [authorization, token] of table) {
    test(JSON.stringify(authorization) ?? "no header", () => {
      assert.equal(bearerToken(ask(authorization)), token);
    });
  }
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

test("a token in the query or the body is ignored (RFC 9700 §4.3.2)", async (t) => {
  const { bearer, issue } = await open(t);
  const { token } = issue();
  const request = sampleRequest({ query: `access_token=${token}`, body: `access_token=${token}` });
  await assert.rejects(async () => bearer.authenticate(request, []), { status: 401 });
});

async function otherKey() {
  return importKey("k1", "ES256", await generatePrivateKey("ES256"));
}

async function open(t: TestContext, accessTokenTtlMs = TTL_MS) {
  const database = openDatabase(t);
  const clock = { nowMs: NOW_MS };
  const now = () => clock.nowMs;
  const revocations = await loadRevocations(database, now);
  const kids = new Set(["k1"]);
  const keys = ringOf(key, (kid) => kids.has(kid) ? key : undefined);
  const config = { accessTokenTtlMs, refreshTokenTtlMs: TTL_MS, authorizationServer: true };
  const uses = createUses(database, now);
  const pageKey = new Uint8Array(32);
  const tokens = createTokenIssuer({ issuer: ISSUER, keys, config, pageKey });
  const createFor = (issuer: string) => {
    const fetchDocument = () => Promise.reject(new Error("not needed here"));
    const issuerTokens = createIssuerTokens({ database, revocations, issuer, fetchDocument, now });
    return createBearer({
      issuer, keys, tokens, issuerTokens, revocations, uses, database, now, config,
    });
  };
  return {
    bearer: createFor(ISSUER),
    createFor,
    clock,
    database,
    tokens,
    kids,
    onRefresh: (refresh: () => Promise<void>) => t.mock.method(keys, "refresh", refresh),
    issue(more: Partial<ReturnType<typeof input>> = {}, by = key) {
      const all = { ...input(), ...more };
      const { claims, expiresAtMs } = accessTokenClaims(all);
      return { token: signJwt("at+jwt", claims, by), expiresAtMs, grantId: all.grantId };
    },
    async revoke(target: string) {
      await database.write([revocation(target, NOW_MS + TTL_MS, NOW_MS + TTL_MS)]);
      await revocations.refresh();
    },
  };
}

function input() {
  return {
    issuer: ISSUER,
    sub: "u1",
    clientId: "a1",
    grantId: newId("g", NOW_MS),
    scopes: ["consumer", "orders"],
    issuedAtMs: NOW_MS,
    ttlMs: TTL_MS,
  };
}

function ask(authorization: string | undefined) {
  return sampleRequest({ headers: authorization === undefined ? {} : { authorization } });
}

async function refusal(
  bearer: Bearer,
  authorization: string | undefined,
  scopes: string[],
): Promise<Problem> {
  try {
    await bearer.authenticate(ask(authorization), scopes);
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error;
  }
  return assert.fail("it was accepted");
}
