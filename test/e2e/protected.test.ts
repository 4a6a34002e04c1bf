import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { forgedTokens, misusedTokens, type PublishedKey } from "../corpus/jwts.ts";
import { queryDatabase } from "../helpers/engine.ts";
import { type Gatepost, startGatepost, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { sendRaw, sendSlowly } from "../helpers/raw_http.ts";
import { bearer } from "../helpers/requests.ts";
import { decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

let gatepost: Gatepost;
let user: TestUser;
let token: string;
before(async () => {
  gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: ENDPOINTS } });
  user = await gatepost.createUser();
  token = await gatepost.login(user);
});
after(() => gatepost.stop());

const whoami = (headers: Readonly<Record<string, string>>): Promise<ClientResponse> =>
  gatepost.api.get("/authorization/whoami", headers);

/** The part of a challenge that has the URL of a path's metadata (RFC 9728 §3.1). */
const metadataOf = (path: string) =>
  `resource_metadata="${gatepost.issuer}/.well-known/oauth-protected-resource${path}"`;

function assertInvalidToken({ status, headers, text }: ClientResponse, what = ""): void {
  assert.equal(status, 401, `${what}: ${text}`);
  const metadata = metadataOf("/authorization/whoami");
  const expected = `Bearer realm="gatepost", error="invalid_token", ${metadata}`;
  assert.equal(headers.get("www-authenticate"), expected);
}

const paths: [method: string, path: string, scope?: string][] = [
  ["GET", "/authorization/whoami"],
  ["GET", "/consumer/subscription", "consumer"],
  ["POST", "/consumer/subscription", "consumer"],
  ["GET", "/backend/user", "backend"],
  ["POST", "/backend/app", "backend"],
  ["GET", "/orders"],
  ["POST", "/orders/1", "orders"],
];

describe("a protected request without a token (RFC 6750 §3, RFC 9728 §5.1)", () => {
  for (const [method, path, scope] of paths) {
    test(`${method} ${path} returns 401 with a challenge that names no error`, async () => {
      const response = await gatepost.api.send(method, path);
      assert.equal(response.status, 401);
      const challenge = response.headers.get("www-authenticate");
      const needed = scope === undefined ? "" : `scope="${scope}", `;
      assert.equal(challenge, `Bearer realm="gatepost", ${needed}${metadataOf(path)}`);
      assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json\b/);
    });
  }

  const elsewhere: [what: string, send: () => Promise<ClientResponse>][] = [
    ["in the query (RFC 9700 §4.3.2)",
      () => gatepost.api.get(`/authorization/whoami?access_token=${token}`)],
    ["in a form",
      () => gatepost.api.postForm("/consumer/subscription", { access_token: token })],
    ["in a cookie", () => whoami({ cookie: `access_token=${token}; token=${token}` })],
    ["in another header", () => whoami({ "x-access-token": token })],
    ["under scheme Token", () => whoami({ authorization: `Token ${token}` })],
    ["under scheme Basic", () => whoami({ authorization: `Basic ${token}` })],
    ["under no scheme", () => whoami({ authorization: token })],
  ];
  for (const [what, send] of elsewhere) {
    test(`gets the same response if it has a token ${what}`, async () => {
      const response = await send();
      assert.equal(response.status, 401);
      assert.doesNotMatch(response.headers.get("www-authenticate") ?? "error", /error/);
    });
  }
});

describe("a protected request with a valid token", () => {
  for (const scheme of ["Bearer ", "bearer ", "BEARER ", "Bearer  "]) {
    test(`is accepted with the scheme "${scheme}" (RFC 9110 §11.1)`, async () => {
      assert.equal((await whoami({ authorization: scheme + token })).status, 200);
    });
  }

  test("is of the token's user, whatever the other headers say", async () => {
    const headers = { ...bearer(token), "x-user": "admin", cookie: `gatepost=${token}` };
    assert.equal(readObject(await whoami(headers))["sub"], user.id);
  });

  test("returns 403 with the scope that the token lacks (RFC 6750 §3.1)", async () => {
    const missing: [method: string, path: string, scope: string][] = [
      ["GET", "/backend/user", "backend"],
      ["POST", "/backend/app", "backend"],
      ["POST", "/orders/1", "orders"],
    ];
    for (const [method, path, scope] of missing) {
      const response = await gatepost.api.send(method, path, { headers: bearer(token) });
      assert.equal(response.status, 403, path);
      const expected =
        'Bearer realm="gatepost", error="insufficient_scope", ' +
        `scope="${scope}", ${metadataOf(path)}`;
      assert.equal(response.headers.get("www-authenticate"), expected);
      assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json\b/);
    }
  });

  test("returns 403 if the token's scopes are only similar to the needed one", async () => {
    const scopes = ["consumer2", "Consumer", "consume", "consumer.read"];
    const other = await gatepost.login(await gatepost.createUser({ scopes }));
    const response = await gatepost.api.get("/consumer/subscription", bearer(other));
    assert.equal(response.status, 403);
  });

  test("is accepted with any scope if the endpoint needs none", async () => {
    const other = await gatepost.login(await gatepost.createUser({ scopes: ["stock"] }));
    assert.equal((await gatepost.api.get("/orders", bearer(other))).status, 200);
  });
});

describe("whoami returns", () => {
  test("the user, the app login, the scopes and the expiry of a login token", async () => {
    const { claims } = decodeJwt(token);
    assert.deepEqual(readObject(await whoami(bearer(token))), {
      sub: user.id,
      kind: "user",
      username: user.username,
      client_id: "login",
      scope: "consumer",
      expires_at: new Date(Number(claims["exp"]) * 1000).toISOString(),
    });
  });

  test("a response that no cache may keep", async () => {
    const response = await whoami(bearer(token));
    assert.equal(response.headers.get("cache-control"), "no-store");
  });
});

describe("an invalid access token (RFC 6750 §3.1)", () => {
  /** The service's published key. */
  async function readJwk(): Promise<PublishedKey> {
    const response = await gatepost.api.get("/.well-known/jwks.json");
    const { keys: [jwk] }: { keys: [PublishedKey] } = JSON.parse(response.text);
    return jwk;
  }

  test("gets 401 if it is forged", async () => {
    const forged = forgedTokens({ token, jwk: await readJwk() });
    assert.ok(forged.length > 100);
    for (const [what, forgery] of forged) assertInvalidToken(await whoami(bearer(forgery)), what);
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("gets 401 if the service's own key signed it for something else", async () => {
    const [row] = await queryDatabase(gatepost.server.folder, "SELECT private FROM keys");
    const key = createPrivateKey(String(row?.["private"]).replace(/^plain:/, ""));
    const misused = misusedTokens(token, key);
    for (const [what, misuse] of misused) assertInvalidToken(await whoami(bearer(misuse)), what);
  });

  test("gets 401 if one bit is flipped", async () => {
    const flipped: string[] = [];
    const dots = [...token.matchAll(/\./g)].map(({ index }) => index);
    const near = (index: number) =>
      index < 24 || index >= token.length - 24 || dots.some((dot) => Math.abs(dot - index) <= 6);
    for (let index = 0; index < token.length; index++) {
      if (!near(index)) continue;
      for (let bit = 0; bit < 8; bit++) {
        const character = String.fromCharCode(token.charCodeAt(index) ^ (1 << bit));
        // A header can hold nothing else (RFC 9110 §5.5).
        if (!/[\x21-\x7e\x80-\xff]/.test(character)) continue;
        flipped.push(token.slice(0, index) + character + token.slice(index + 1));
      }
    }
    assert.ok(flipped.length > 400);
    for (const each of flipped) assertInvalidToken(await whoami(bearer(each)), each);
  });

  test("gets 401 if it is cut off anywhere", async () => {
    for (let length = 1; length < token.length; length += 7) {
      assertInvalidToken(await whoami(bearer(token.slice(0, length))), String(length));
    }
    assertInvalidToken(await whoami(bearer(token.slice(0, -1))));
  });

  test("gets 431 if it is larger than a header may be", async () => {
    const head = `Authorization: Bearer ${"A".repeat(20_000)}\r\n`;
    const { status } = await sendRaw(gatepost.url, "GET", "/authorization/whoami", { head });
    assert.equal(status, 431);
  });

  test("gets 401 if it is a refresh token or a code", async () => {
    const app = await gatepost.createApp({ trusted: true });
    const { refresh_token } = await gatepost.codeTokens(app, user);
    assertInvalidToken(await whoami(bearer(refresh_token)));
    assertInvalidToken(await whoami(bearer(await gatepost.code(app, user))));
  });

  test("gets 401 if another Gatepost issued it", async () => {
    const other = await startGatepost();
    try {
      assertInvalidToken(await whoami(bearer(other.adminToken)));
      assert.equal(await other.isAlive(token), false);
    } finally {
      await other.stop();
    }
  });

  test("gets 401 if the service issued it with another base URL", async () => {
    const moved = await startGatepost({
      folder: gatepost.server.folder,
      env: { GATEPOST_BASE_URL: "https://moved.example" },
    });
    try {
      assert.equal(await moved.isAlive(token), false);
      assertInvalidToken(await whoami(bearer(moved.adminToken)));
    } finally {
      await moved.stop();
    }
  });

  test("gets 401 once GATEPOST_ACCESS_TOKEN_TTL is over", async () => {
    const quick = await startGatepost({ env: { GATEPOST_ACCESS_TOKEN_TTL: "2s" } });
    try {
      const app = await quick.createApp();
      const tokens = readTokens(await quick.token(app, { grant_type: "client_credentials" }));
      assert.equal(tokens.expires_in, 2);
      assert.equal(await quick.isAlive(tokens.access_token), true);
      await sleep(2050);
      assert.equal(await quick.isAlive(tokens.access_token), false);
    } finally {
      await quick.stop();
    }
  });
});

describe("an access token", () => {
  test("ends at once if its user is disabled", async () => {
    const leaver = await gatepost.createUser();
    const mine = await gatepost.login(leaver);
    await gatepost.change(leaver, { status: "disabled" });
    assert.equal(await gatepost.isAlive(mine), false);
  });

  test("ends at once if its user loses one of its scopes", async () => {
    const demoted = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const mine = await gatepost.login(demoted);
    await gatepost.change(demoted, { scopes: ["consumer"] });
    assert.equal(await gatepost.isAlive(mine), false);
    assert.equal(await gatepost.isAlive(await gatepost.login(demoted)), true);
  });

  test("ends at once if it is revoked, even for a request whose body is arriving", async () => {
    const admin = await gatepost.createUser({ scopes: ["backend"] });
    const mine = await gatepost.login(admin);
    const requests: [method: string, path: string, body: string][] = [
      ["POST", "/backend/event", JSON.stringify({ name: "order.created", data: 1 })],
      ["POST", "/backend/user", JSON.stringify({ username: "late", password: "long enough" })],
    ];
    const finishes = [];
    for (const [method, path, body] of requests) {
      const head = { "Content-Type": "application/json", Authorization: `Bearer ${mine}` };
      finishes.push(await sendSlowly(gatepost.url, method, path, { head, body }));
    }
    await gatepost.api.send("POST", "/authorization/revoke", { headers: bearer(mine) });
    for (const finish of finishes) {
      const { status, headers } = await finish();
      assert.equal(status, 401);
      assert.match(headers["www-authenticate"] ?? "", /error="invalid_token"/);
    }
    const events = await gatepost.api.get("/backend/event", bearer(gatepost.adminToken));
    assert.deepEqual(readObject(events)["items"], []);
  });

  test("does not end if another user is disabled", async () => {
    const other = await gatepost.createUser();
    await gatepost.login(other);
    await gatepost.change(other, { status: "disabled" });
    assert.equal(await gatepost.isAlive(token), true);
  });
});
