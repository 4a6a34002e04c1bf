import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { sendRaw } from "../helpers/raw_http.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import { assertOAuthError, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/limited_endpoints", import.meta.url));
const env = { GATEPOST_ENDPOINTS: ENDPOINTS, GATEPOST_BASE_URL: "http://gatepost.test" };

let gatepost: Gatepost;
let other: Gatepost;
before(async () => {
  gatepost = await startGatepost({ env });
  other = await startGatepost({ env, folder: gatepost.server.folder });
});
after(async () => {
  await other.stop();
  await gatepost.stop();
});

const limitsOf = ({ headers }: ClientResponse) =>
  ["ratelimit-policy", "ratelimit", "retry-after"].map((name) => headers.get(name));

function assertRefused(response: ClientResponse): void {
  assert.equal(response.status, 429, response.text);
  assert.equal(readObject(response)["type"], "urn:gatepost:problem:rate_limited");
  assert.match(response.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
}

const whoami = (at: Gatepost, token: string) =>
  at.api.get("/authorization/whoami", bearer(token));

describe("an endpoint's limit", () => {
  test("refuses calls past it, is in each response, and counts callers separately", async () => {
    const [alice, bob] = [await gatepost.createUser(), await gatepost.createUser()];
    const headers = bearer(await gatepost.login(alice));
    const post = (more = headers) => gatepost.api.postJson("/narrow", { a: 1 }, more);
    const policy = '"endpoint";q=2;w=3600';
    assert.deepEqual(limitsOf(await post()), [policy, '"endpoint";r=1;t=1800', null]);
    assert.match(limitsOf(await post())[1] ?? "", /^"endpoint";r=0;t=3600$/);
    const refused = await post();
    assertRefused(refused);
    assert.deepEqual(limitsOf(refused).slice(0, 2), [policy, '"endpoint";r=0;t=3600']);
    assert.equal((await post(bearer(await gatepost.login(bob)))).status, 200);
  });

  test("refuses a request before its body arrives", async () => {
    const token = await gatepost.login(await gatepost.createUser());
    for (let time = 0; time < 2; time++) {
      const response = await gatepost.api.postJson("/narrow", {}, bearer(token));
      assert.equal(response.status, 200);
    }
    const head = `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
      "Content-Length: 1000000\r\n";
    assert.equal((await sendRaw(gatepost.url, "POST", "/narrow", { head })).status, 429);
  });

  test("does not count requests without a valid token", async () => {
    for (let time = 0; time < 4; time++) {
      const response = await gatepost.api.postJson("/narrow", {}, bearer("no"));
      assert.deepEqual([response.status, limitsOf(response)], [401, [null, null, null]]);
    }
  });

  test("counts addresses at a public endpoint, and is in error responses too", async () => {
    const from = (address: string) => gatepost.api.get("/open", { "x-forwarded-for": address });
    const first = await from("2001:db8::1");
    assert.deepEqual([first.status, limitsOf(first)[1]], [418, '"endpoint";r=0;t=3600']);
    assertRefused(await from("2001:db8::2"));
    assert.equal((await from("2001:db8:0:1::1")).status, 418);
  });
});

describe("a rate of a user or an app", () => {
  test("takes effect in every process soon after it is set, and ends when removed", async () => {
    const user = await gatepost.createUser();
    const token = await gatepost.login(user);
    assert.deepEqual(limitsOf(await whoami(other, token)), [null, null, null]);
    await gatepost.change(user, { rate: "1/1d" });
    await until(async () => (await whoami(other, token)).status === 429);
    await until(async () => (await whoami(gatepost, token)).status === 429);
    assertRefused(await whoami(gatepost, token));
    await gatepost.change(user, { rate: "1000000/1s" });
    await until(async () => (await whoami(other, token)).status === 200);
    await gatepost.change(user, { rate: null });
    await until(async () => limitsOf(await whoami(other, token))[0] === null);
  });

  test("applies together with the other one and with the endpoint's limit", async () => {
    const user = await gatepost.createUser();
    const app = await gatepost.createApp({ grants: ["password", "client_credentials"] });
    await gatepost.change(user, { rate: "100/1h" });
    await gatepost.change(app, { rate: "200/1h" });
    const { access_token: token } = await gatepost.passwordTokens(app, user);
    const both = '"user";q=100;w=3600, "app";q=200;w=3600';
    await until(async () => limitsOf(await whoami(gatepost, token))[0] === both);
    const response = await gatepost.api.postJson("/narrow", {}, bearer(token));
    assert.equal(limitsOf(response)[0], `"endpoint";q=2;w=3600, ${both}`);
    const own = await gatepost.token(app, { grant_type: "client_credentials" });
    const asApp = await whoami(gatepost, String(readObject(own)["access_token"]));
    assert.equal(limitsOf(asApp)[0], '"app";q=200;w=3600');
  });

  test("never prevents the revocation of a token", async () => {
    const user = await gatepost.createUser();
    const token = await gatepost.login(user);
    await gatepost.change(user, { rate: "1/1d" });
    await until(async () => (await whoami(gatepost, token)).status === 429);
    const revoked = await gatepost.api.send("POST", "/authorization/revoke", {
      headers: bearer(token),
    });
    assert.deepEqual([revoked.status, limitsOf(revoked)], [200, [null, null, null]]);
    assert.equal((await whoami(gatepost, token)).status, 401);
  });
});

test("GATEPOST_RATE_LIMIT limits each client, but never revocation or /system", async (t) => {
  const limited = await startGatepost({ env: { GATEPOST_RATE_LIMIT: "20/1d" } });
  t.after(() => limited.stop());
  const app = await limited.createApp();
  const headers = { "x-forwarded-for": "192.0.2.7" };
  const login = { username: "nobody", password: "wrong password" };
  const token = () =>
    limited.api.postForm("/authorization/token", { grant_type: "client_credentials" }, {
      ...basicAuth(app),
      ...headers,
    });
  const first = await token();
  assert.deepEqual([first.status, limitsOf(first).slice(0, 2)],
    [200, ['"address";q=20;w=86400', '"address";r=19;t=4320']]);
  const issued = String(readObject(first)["access_token"]);
  for (let time = 1; time < 20; time++) assert.equal((await token()).status, 200);
  const refused = await token();
  assertOAuthError(refused, 429, "temporarily_unavailable");
  assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  assertRefused(await limited.api.postJson("/consumer/login", login, headers));
  const page = await limited.api.get("/authorization/authorize", headers);
  assert.deepEqual([page.status, page.headers.get("content-type")?.split(";")[0]],
    [429, "text/html"]);

  // Requests with a token count for its caller, not for their address.
  const asApp = { ...headers, ...bearer(issued) };
  assert.equal((await limited.api.get("/authorization/whoami", asApp)).status, 200);

  const never = [
    ...["/system/health", "/system/about", "/openapi.json"],
    ...["/.well-known/jwks.json", "/.well-known/oauth-authorization-server"],
  ].map((path) => limited.api.get(path, headers));
  const asked = limited.api.postForm("/authorization/introspect", { token: issued }, {
    ...basicAuth(app),
    ...headers,
  });
  const metrics = limited.api.get("/system/metrics", {
    ...headers,
    ...bearer(limited.adminToken),
  });
  const revoked = limited.api.postForm("/authorization/revoke", { token: issued }, {
    ...basicAuth(app),
    ...headers,
  });
  for (const response of await Promise.all([...never, asked, revoked, metrics])) {
    assert.deepEqual([response.status, limitsOf(response)], [200, [null, null, null]]);
  }
  assert.match((await metrics).text, /^gatepost_rate_limited_total\{policy="address"\} 3$/m);
  const preflight = await limited.api.send("OPTIONS", "/authorization/token", { headers });
  assert.deepEqual([preflight.status, limitsOf(preflight)], [204, [null, null, null]]);
});

describe("CORS of an endpoint", () => {
  const preflight = (path: string, origin: string, method: string) =>
    gatepost.api.send("OPTIONS", path, {
      headers: { origin, "access-control-request-method": method },
    });
  const cors = ({ headers }: ClientResponse, name: string) => headers.get(`access-control-${name}`);

  test("allows the origins and headers that it names, and no origin of an app", async () => {
    const app = await gatepost.createApp({ url: "https://app.example" });
    const allowed = await preflight("/narrow", "https://shop.example", "POST");
    assert.equal(cors(allowed, "allow-origin"), "https://shop.example");
    assert.match(cors(allowed, "allow-headers") ?? "", /Idempotency-Key.*X-Cart/);
    const refused = await preflight("/narrow", app.url, "POST");
    assert.deepEqual([refused.status, cors(refused, "allow-origin")], [204, null]);
    const origin = "https://shop.example";
    const response = await gatepost.api.postJson("/narrow", {}, { origin }); // no token
    assert.equal(cors(response, "allow-origin"), origin);
    assert.match(cors(response, "expose-headers") ?? "", /ETag.*RateLimit.*X-Total/);
  });

  test("may allow every origin", async () => {
    const response = await gatepost.api.get("/open", { origin: "https://any.example" });
    assert.deepEqual([cors(response, "allow-origin"), response.headers.get("vary")], ["*", null]);
  });
});
