import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bearer, bearerToken } from "../../src/api/bearer.ts";
import { Problem } from "../../src/base/problem.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { open } from "./bearer_stage.ts";

const METADATA = "https://as.example/.well-known/oauth-protected-resource/";

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

test("a token in the query or the body is ignored (RFC 9700 §4.3.2)", async (t) => {
  const { bearer, issue } = await open(t);
  const { token } = issue();
  const request = sampleRequest({ query: `access_token=${token}`, body: `access_token=${token}` });
  await assert.rejects(async () => bearer.authenticate(request, []), { status: 401 });
});

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
