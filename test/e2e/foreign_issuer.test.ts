import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { forgedTokens } from "../corpus/jwts.ts";
import {
  type ForeignIssuer,
  newForeignKey,
  registerIssuer,
  startForeignIssuer,
  waitUntilAlive,
} from "../helpers/foreign_issuer.ts";
import {
  bearer,
  expectStatus,
  type Gatepost,
  readObject,
  startGatepost,
  waitUntilDead,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";

const env = {
  GATEPOST_BASE_URL: "http://gatepost.test",
  GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
  GATEPOST_RESEND_DELAYS: "20ms",
  GATEPOST_DISTRIBUTE_INTERVAL: "100ms",
};

let first: Gatepost;
let second: Gatepost;
let issuer: ForeignIssuer;
let record: Readonly<Record<string, unknown>>;
let receiver: Receiver;
before(async () => {
  first = await startGatepost({ env });
  second = await startGatepost({ env, folder: first.server.folder });
  issuer = await startForeignIssuer(first.issuer);
  record = await registerIssuer(first, issuer);
  receiver = await startReceiver();
});
after(async () => {
  await second.stop();
  await first.stop();
  await Promise.all([issuer.close(), receiver.close()]);
});

type Body = Readonly<Record<string, unknown>>;

const admin = () => bearer(first.adminToken);
const call = (method: string, path: string, body?: Body, headers: Body = admin()) =>
  body === undefined
    ? first.api.send(method, path, { headers: headers as Record<string, string> })
    : first.api.sendJson(method, path, body, headers as Record<string, string>);
const whoami = async (token: string, at = first) =>
  readObject(await expectStatus(200, at.api.get("/authorization/whoami", bearer(token))));
const subscribe = (token: string, event: string, path = `/${event}`): Promise<ClientResponse> =>
  first.api.postJson("/consumer/subscription", { event, endpoint: receiver.url + path },
    bearer(token));
const dispatch = (name: string, more: Body = {}) =>
  expectStatus(202, first.api.postJson("/backend/event", { name, data: 1, ...more }, admin()));

/** Starts and registers another issuer. Its first token makes the service fetch its keys. */
async function another(more: Body = {}, key = newForeignKey("f1")) {
  const own = await startForeignIssuer(first.issuer, { key });
  const { id } = await registerIssuer(first, own, more);
  return { ...own, id: String(id) };
}

describe("a registered issuer", () => {
  test("may be another Gatepost whose key was made just now", async () => {
    const own = await another({}, newForeignKey(newId("k", Date.now())));
    assert.equal((await whoami(own.token()))["issuer"], own.url);
    await own.close();
  });

  test("is shown with its jwks_uri, and after the service itself in the metadata", async () => {
    const { id, created_at: _, ...rest } = record;
    assert.match(String(id), /^i/);
    assert.deepEqual(rest, {
      issuer: issuer.url, audience: null, scopes: ["consumer", "orders"], scope_claim: "scope",
      jwks_uri: `${issuer.receiver.url}/keys`, jwt_type: false, status: "active",
    });
    const response = await first.api.get("/.well-known/oauth-protected-resource");
    const { authorization_servers: servers } = readObject(response);
    assert.ok(Array.isArray(servers));
    assert.deepEqual(servers.slice(0, 2), [first.issuer, issuer.url]);
  });

  test("cannot be registered a second time, and neither can the service itself", async () => {
    const again = { issuer: issuer.url, scopes: ["consumer"] };
    assert.equal((await call("POST", "/backend/issuer", again)).status, 409);
    const own = await call("POST", "/backend/issuer", { issuer: first.issuer, scopes: ["a"] });
    assert.equal(own.status, 400);
    assert.match(own.text, /"pointer":"\/issuer"/);
  });

  test("with a path is found by the metadata URL of RFC 8414", async (t) => {
    const own = await startForeignIssuer(first.issuer, { path: "/realm" });
    t.after(() => own.close());
    const metadata = { issuer: own.url, jwks_uri: `${own.receiver.url}/keys` };
    own.receiver.answer("/realm/.well-known/openid-configuration", 500);
    const place = "/.well-known/oauth-authorization-server/realm";
    own.receiver.react(place, { kind: "answer", status: 200, body: JSON.stringify(metadata) });
    await registerIssuer(first, own);
    assert.equal(await first.isAlive(own.token()), true);
  });

  const BROKEN: readonly (readonly [what: string, metadata: (url: string) => unknown])[] = [
    ["names another issuer", (url) => ({ issuer: `${url}/`, jwks_uri: `${url}/keys` })],
    ["names no issuer", (url) => ({ jwks_uri: `${url}/keys` })],
    ["has no jwks_uri", (url) => ({ issuer: url })],
    ["has a list as jwks_uri", (url) => ({ issuer: url, jwks_uri: [`${url}/keys`] })],
    ["has a jwks_uri in 10.0.0.0/8", (url) => ({ issuer: url, jwks_uri: "https://10.0.0.1/" })],
    ["has an http jwks_uri elsewhere", (url) => ({ issuer: url, jwks_uri: "http://192.0.2.1/" })],
    ["has a file as jwks_uri", (url) => ({ issuer: url, jwks_uri: "file:///etc/passwd" })],
    ["has a jwks_uri that is not found", (url) => ({ issuer: url, jwks_uri: `${url}/none` })],
    ["is a list", () => []],
  ];
  for (const [what, metadata] of BROKEN) {
    test(`is refused at registration if its metadata ${what}`, async (t) => {
      const own = await startForeignIssuer(first.issuer);
      t.after(() => own.close());
      const body = JSON.stringify(metadata(own.url));
      own.receiver.react("/.well-known/openid-configuration",
        { kind: "answer", status: 200, body });
      const response = await call("POST", "/backend/issuer", { issuer: own.url, scopes: ["a"] });
      assert.equal(response.status, 400, response.text);
      assert.match(response.text, /"pointer":"\/(issuer|jwks_uri)"/);
    });
  }

  test("may publish keys in 64 KiB, and not one byte more", async (t) => {
    const own = await startForeignIssuer(first.issuer);
    t.after(() => own.close());
    const padding = (count: number) => [own.key.jwk, { kty: "oct", pad: "x".repeat(count) }];
    const left = 65_536 - JSON.stringify({ keys: padding(0) }).length;
    own.publish(padding(left + 1));
    const body = { issuer: own.url, scopes: ["consumer"] };
    const response = await call("POST", "/backend/issuer", body);
    assert.equal(response.status, 400);
    assert.match(response.text, /"pointer":"\/jwks_uri"|longer than 65536 bytes/);
    own.publish(padding(left));
    await registerIssuer(first, own);
    assert.equal(await first.isAlive(own.token()), true);
  });

  const SHAPES: readonly (readonly [pointer: string, change: Body])[] = [
    ["/issuer", { issuer: "http://id.example.com" }],
    ["/issuer", { issuer: "https://id.example.com?x=1" }],
    ["/issuer", { issuer: "https://id.example.com#x" }],
    ["/issuer", { issuer: "https://a:b@id.example.com" }],
    ["/issuer", { issuer: "id.example.com" }],
    ["/scopes", { scopes: [] }],
    ["/scopes", { scopes: undefined }],
    ["/scopes/0", { scopes: ["a b"] }],
    ["/scope_claim", { scope_claim: "groups" }],
    ["/audience", { audience: "" }],
    ["/jwks_uri", { jwks_uri: "http://id.example.com/" }],
    ["/jwt_type", { jwt_type: "yes" }],
    ["/secret", { secret: "x" }],
  ];
  for (const [pointer, change] of SHAPES) {
    test(`is refused with ${JSON.stringify(change)}`, async () => {
      const body = { issuer: "https://id.example.com", scopes: ["a"], ...change };
      const response = await call("POST", "/backend/issuer", body);
      assert.equal(response.status, 400);
      assert.ok(response.text.includes(`"pointer":"${pointer}"`), response.text);
    });
  }
});

describe("a token of another issuer", () => {
  test("is accepted for what its scopes allow, and its principal stays the same", async () => {
    const { sub, expires_at, ...rest } = await whoami(issuer.token());
    assert.match(String(sub), /^x/);
    assert.ok(expires_at);
    assert.deepEqual(rest, { kind: "principal", issuer: issuer.url, scope: "consumer orders" });
    assert.equal((await whoami(issuer.token(), second))["sub"], sub);
    assert.notEqual((await whoami(issuer.token({ sub: "bob" })))["sub"], sub);
    assert.equal((await first.api.get("/consumer/event", bearer(issuer.token()))).status, 200);
    const grabbing = bearer(issuer.token({ scope: "backend" }));
    assert.equal((await first.api.get("/backend/user", grabbing)).status, 403);
  });

  test("makes one principal, even if both processes get its first tokens at once", async () => {
    const tokens = Array.from({ length: 20 }, () => issuer.token({ sub: "crowd" }));
    const all = await Promise.all(
      tokens.map((token, at) => whoami(token, at % 2 ? first : second)),
    );
    assert.equal(new Set(all.map(({ sub }) => sub)).size, 1);
  });

  test("can administer if its issuer may grant the scope backend", async (t) => {
    const own = await another({ scopes: ["backend"] });
    t.after(() => own.close());
    const token = own.token({ scope: "backend consumer" });
    await expectStatus(200, first.api.get("/backend/user", bearer(token)));
    assert.equal((await first.api.get("/consumer/event", bearer(token))).status, 403);
    const user = { username: "by-theirs", password: "correct horse battery" };
    await expectStatus(201, first.api.postJson("/backend/user", user, bearer(token)));
    const { sub } = await whoami(token);
    const { items } = readObject(await call("GET", `/backend/audit?actor=${sub}`));
    assert.equal(Array.isArray(items) && items[0]?.action, "user.create");
    assert.equal(Array.isArray(items) && items[0]?.app, null);
  });

  for (const alg of ["RS256", "EdDSA"] as const) {
    test(`is accepted only with alg ${alg} if its key has alg ${alg}`, async (t) => {
      const own = await another({}, newForeignKey("k", alg));
      t.after(() => own.close());
      assert.equal(await first.isAlive(own.token()), true);
      assert.equal(await first.isAlive(own.token({}, { alg: "ES256" })), false);
    });
  }

  test("carries its scopes in the claim that its issuer's record names", async (t) => {
    const own = await another({ scope_claim: "roles", jwt_type: true, audience: "api://orders" });
    t.after(() => own.close());
    const token = own.token({ roles: ["orders", "x"], scope: "consumer", aud: "api://orders" },
      { typ: "JWT" });
    assert.equal((await whoami(token))["scope"], "orders");
    assert.equal(await first.isAlive(own.token({ roles: ["orders"] }, { typ: "JWT" })), false);
  });

  test("is refused if it is forged in any known way", async () => {
    const token = issuer.token();
    assert.equal(await first.isAlive(token), true);
    const jwk = { ...issuer.key.jwk, kid: issuer.key.kid };
    for (const [what, forged] of forgedTokens({ token, jwk })) {
      const response = await first.api.get("/authorization/whoami", bearer(forged))
        .catch(() => undefined); // a header cannot hold it
      assert.notEqual(response?.status, 200, what);
    }
  });

  test("is accepted for either key if an EC and an RSA key have the same kid", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const rsa = newForeignKey("f1", "RS256");
    own.publish([own.key.jwk, rsa.jwk]);
    assert.equal(await first.isAlive(own.token()), true);
    assert.equal(await first.isAlive(own.token({}, {}, rsa)), true);
    assert.equal(await first.isAlive(own.token({}, { alg: "ES256" }, rsa)), false);
  });

  test("of one issuer is refused as one of another, even if their keys share a kid", async (t) => {
    const one = await another({}, newForeignKey("same"));
    const other = await another({}, newForeignKey("same"));
    t.after(() => Promise.all([one.close(), other.close()]));
    assert.equal(await first.isAlive(one.token()), true);
    assert.equal(await first.isAlive(other.token()), true);
    assert.equal(await first.isAlive(other.token({ iss: one.url })), false);
    assert.equal(await first.isAlive(one.token({ iss: other.url }, {}, one.key)), false);
    const [mine, theirs] = [await whoami(one.token()), await whoami(other.token())];
    assert.notEqual(mine["sub"], theirs["sub"]);
  });

  test("is refused if it names this service as its issuer, or a kid of this service", async () => {
    const jwks = readObject(await first.api.get("/.well-known/jwks.json"));
    const [published] = jwks["keys"] as { kid: string }[];
    const kid = String(published?.kid);
    const nowS = Math.floor(Date.now() / 1000);
    const ours = {
      iss: first.issuer, aud: first.issuer, sub: "u000000000000000000000000", client_id: "login",
      iat: nowS, exp: nowS + 60, jti: "g000000000000000000000000ffff", scope: "backend",
    };
    assert.equal(await first.isAlive(issuer.token(ours)), false);
    assert.equal(await first.isAlive(issuer.token(ours, { kid })), false);
    assert.equal(await first.isAlive(issuer.token({}, { kid })), false);
  });

  test("of an unregistered issuer is refused, and that issuer gets no request", async (t) => {
    const stranger = await startForeignIssuer(first.issuer);
    t.after(() => stranger.close());
    assert.equal(await first.isAlive(stranger.token()), false);
    assert.equal(stranger.receiver.count(), 0);
  });

  test("may not read the account, tokens or grants, which need a login token", async () => {
    for (const path of ["token", "account", "grant"]) {
      const response = await first.api.get(`/consumer/${path}`, bearer(issuer.token()));
      assert.equal(response.status, 403, path);
    }
  });

  test("that revokes itself is refused by both processes, and no other token is", async () => {
    const [token, other] = [issuer.token(), issuer.token()];
    assert.equal(await first.isAlive(token), true);
    assert.equal(await second.isAlive(token), true);
    await expectStatus(200, first.api.postForm("/authorization/revoke", {}, bearer(token)));
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    assert.equal(await second.isAlive(other), true);
  });

  test("can be revoked if its exp has a fraction of a second", async () => {
    const token = issuer.token({ exp: Math.floor(Date.now() / 1000) + 600.1234567 });
    assert.equal(await first.isAlive(token), true);
    await expectStatus(200, first.api.postForm("/authorization/revoke", {}, bearer(token)));
    assert.equal(await first.isAlive(token), false);
  });

  test("is active for a resource server, and inactive for any other app", async () => {
    const token = issuer.token();
    const introspect = async (more: Body) => {
      const app = await first.createApp(more);
      const basic = Buffer.from(`${app.id}:${app.secret}`).toString("base64");
      return readObject(await first.api.postForm("/authorization/introspect", { token },
        { authorization: `Basic ${basic}` }));
    };
    assert.deepEqual(await introspect({}), { active: false });
    const { sub, exp, jti, ...rest } = await introspect({ resource_server: true });
    assert.match(`${sub} ${exp} ${jti}`, /^x[0-9a-z]{24} \d{10} [0-9a-f]{64}$/);
    assert.deepEqual(rest,
      { active: true, iss: issuer.url, scope: "consumer orders", token_type: "bearer" });
  });
});

describe("a principal of another issuer", () => {
  test("can subscribe, and gets the events whose subject it is", async () => {
    const token = issuer.token({ sub: "carol" });
    const { sub } = await whoami(token);
    await expectStatus(201, subscribe(token, "order.carol"));
    await dispatch("order.carol", { subject: sub });
    const [received] = await receiver.waitFor(1, 5_000, "/order.carol");
    assert.equal(received?.body.toString(), "1");
    const list = readObject(await first.api.get("/consumer/subscription", bearer(token)));
    assert.equal(Array.isArray(list["items"]) && list["items"].length, 1);
  });

  test("is listed with its issuer, and found by the issuer's id or URL", async () => {
    const { sub } = await whoami(issuer.token({ sub: "dave|1" }));
    const { items } = readObject(await call("GET", `/backend/principal?issuer=${record["id"]}`));
    assert.ok(Array.isArray(items));
    const { created_at: _, ...found } = items.find(({ id }) => id === sub);
    assert.deepEqual(found,
      { id: sub, issuer: record["id"], subject: "dave|1", status: "active" });
    const byUrl = `/backend/principal?issuer=${encodeURIComponent(issuer.url)}`;
    assert.deepEqual(readObject(await call("GET", byUrl))["items"], items);
    const none = `/backend/principal?issuer=i${"0".repeat(24)}`;
    assert.deepEqual(readObject(await call("GET", none))["items"], []);
  });

  test("that is disabled is refused at once, and soon by the other process", async () => {
    const token = issuer.token({ sub: "erin" });
    const { sub } = await whoami(token);
    assert.equal(await second.isAlive(token), true);
    const { id } = readObject(await expectStatus(201, subscribe(token, "order.erin")));
    await expectStatus(200, call("PATCH", `/backend/principal/${sub}`, { status: "disabled" }));
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    assert.equal(await first.isAlive(issuer.token({ sub: "erin" })), false);
    const subscription = readObject(await call("GET", `/backend/subscription/${id}`));
    assert.equal(subscription["status"], "disabled");
    assert.equal(subscription["disabled_reason"], "principal disabled");
    await expectStatus(200, call("PATCH", `/backend/principal/${sub}`, { status: "active" }));
    assert.equal(await first.isAlive(token), true);
    assert.equal((await whoami(token))["sub"], sub);
  });

  test("that is deleted becomes a new principal with its next token", async () => {
    const token = issuer.token({ sub: "frank" });
    const { sub } = await whoami(token);
    const { id } = readObject(await expectStatus(201, subscribe(token, "order.frank")));
    await expectStatus(204, call("DELETE", `/backend/principal/${sub}`));
    assert.notEqual((await whoami(token))["sub"], sub);
    await expectStatus(404, call("GET", `/backend/subscription/${id}`));
    await expectStatus(404, call("DELETE", `/backend/principal/${sub}`));
    // With an id of another kind, this could end what belongs to no principal.
    await expectStatus(404, call("PATCH", "/backend/principal/login", { status: "disabled" }));
  });
});

describe("an issuer that is changed", () => {
  test("has no valid tokens and no callbacks as soon as it is disabled or deleted", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const token = own.token();
    const { id } = readObject(await expectStatus(201, subscribe(token, "order.gone", "/gone")));
    await waitUntilAlive(second, token);
    const path = `/backend/issuer/${own.id}`;
    await expectStatus(200, call("PATCH", path, { status: "disabled" }));
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    const subscription = readObject(await call("GET", `/backend/subscription/${id}`));
    assert.equal(subscription["disabled_reason"], "issuer disabled");
    const metadata = await first.api.get("/.well-known/oauth-protected-resource");
    assert.ok(!metadata.text.includes(own.url));
    await dispatch("order.gone");
    await expectStatus(200, call("PATCH", path, { status: "active" }));
    assert.equal(await first.isAlive(token), true);
    await expectStatus(204, call("DELETE", path));
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    await expectStatus(404, call("GET", path));
    assert.equal(receiver.count("/gone"), 0);
    const { items } = readObject(await call("GET", `/backend/audit?target=${own.id}`));
    assert.deepEqual(Array.isArray(items) && items.map(({ action }) => action), [
      "issuer.delete", "issuer.change", "issuer.change", "issuer.create",
    ]);
  });

  test("takes a removed scope from issued tokens and disables subscriptions with it", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const token = own.token();
    assert.equal((await whoami(token))["scope"], "consumer orders");
    const { id } = readObject(await expectStatus(201, subscribe(token, "order.less", "/less")));
    await expectStatus(200, call("PATCH", `/backend/issuer/${own.id}`, { scopes: ["consumer"] }));
    assert.equal((await whoami(token))["scope"], "consumer");
    const subscription = readObject(await call("GET", `/backend/subscription/${id}`));
    assert.equal(subscription["disabled_reason"], "scope removed");
  });

  test("may get another jwks_uri, but only one where keys are found", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const path = `/backend/issuer/${own.id}`;
    const body = JSON.stringify({ keys: [newForeignKey("moved").jwk] });
    own.receiver.react("/moved", { kind: "answer", status: 200, body });
    await expectStatus(400, call("PATCH", path, { jwks_uri: `${own.receiver.url}/missing` }));
    const moved = { jwks_uri: `${own.receiver.url}/moved` };
    assert.equal(readObject(await call("PATCH", path, moved))["jwks_uri"], moved.jwks_uri);
    assert.equal(await first.isAlive(own.token()), false);
    const found = readObject(await call("PATCH", path, { jwks_uri: null }));
    assert.equal(found["jwks_uri"], `${own.receiver.url}/keys`);
    assert.equal(await first.isAlive(own.token()), true);
  });
});

describe("keys of an issuer", () => {
  test("are fetched once for many tokens, and for new kids at most once a minute", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const before = own.receiver.count("/keys");
    const tokens = Array.from({ length: 20 }, () => own.token());
    const alive = await Promise.all(tokens.map((token) => first.isAlive(token)));
    assert.deepEqual(new Set(alive), new Set([true]));
    assert.equal(own.receiver.count("/keys"), before + 1);
    const [made, later] = [newForeignKey("f2"), newForeignKey("f3")];
    own.publish([own.key.jwk, made.jwk]);
    assert.equal(await first.isAlive(own.token({}, {}, made)), true);
    assert.equal(own.receiver.count("/keys"), before + 2);
    own.publish([own.key.jwk, made.jwk, later.jwk]);
    // For a minute nothing is fetched again, whatever the kid.
    assert.equal(await first.isAlive(own.token({}, {}, later)), false);
    assert.equal(own.receiver.count("/keys"), before + 2);
  });

  const ODD: readonly (readonly [what: string, reaction: Parameters<Receiver["react"]>[1]])[] = [
    ["has no end", { kind: "endless" }],
    ["is a redirect", { kind: "answer", status: 302, headers: { location: "/elsewhere" } }],
    ["is a reset", { kind: "reset" }],
    ["has no keys", { kind: "answer", status: 200, body: '{"keys":{}}' }],
  ];
  for (const [what, reaction] of ODD) {
    test(`cost only that issuer's tokens if the response ${what}`, async (t) => {
      const own = await another();
      t.after(() => own.close());
      own.receiver.react("/keys", reaction);
      const response = await first.api.get("/authorization/whoami", bearer(own.token()));
      assert.equal(response.status, 401);
      assert.equal(await first.isAlive(issuer.token()), true);
    });
  }

  test("that do not arrive do not delay other tokens", async (t) => {
    const own = await another();
    t.after(() => own.close());
    own.receiver.react("/keys", { kind: "hang" });
    let isDone = false;
    const hanging = first.api.get("/authorization/whoami", bearer(own.token()))
      .finally(() => isDone = true);
    await own.receiver.waitFor(2, 5_000, "/keys"); // the first is of the registration
    for (let count = 0; count < 5; count++) assert.equal(await first.isAlive(issuer.token()), true);
    assert.equal(await first.isAlive(first.adminToken), true);
    assert.equal(isDone, false);
    assert.equal((await hanging).status, 401);
  });
});
