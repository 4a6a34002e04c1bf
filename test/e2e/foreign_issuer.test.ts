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

/** An issuer of its own, registered, whose keys are fetched by the first token. */
async function another(more: Body = {}, key = newForeignKey("f1")) {
  const own = await startForeignIssuer(first.issuer, { key });
  const { id } = await registerIssuer(first, own, more);
  return { ...own, id: String(id) };
}

describe("a registered issuer", () => {
  test("may be another Gatepost, which has made its key just now", async () => {
    const own = await another({}, newForeignKey(newId("k", Date.now())));
    assert.equal((await whoami(own.token()))["issuer"], own.url);
    await own.close();
  });

  test("is shown with what was found, and in the metadata behind the service itself", async () => {
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

  test("cannot be registered twice, nor can the service itself", async () => {
    const again = { issuer: issuer.url, scopes: ["consumer"] };
    assert.equal((await call("POST", "/backend/issuer", again)).status, 409);
    const own = await call("POST", "/backend/issuer", { issuer: first.issuer, scopes: ["a"] });
    assert.equal(own.status, 400);
    assert.match(own.text, /"pointer":"\/issuer"/);
  });

  test("has its metadata where RFC 8414 puts them, below a path too", async (t) => {
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
    ["names none", (url) => ({ jwks_uri: `${url}/keys` })],
    ["names no keys", (url) => ({ issuer: url })],
    ["names keys that are no text", (url) => ({ issuer: url, jwks_uri: [`${url}/keys`] })],
    ["names keys at a private address", (url) => ({ issuer: url, jwks_uri: "https://10.0.0.1/" })],
    ["names keys over http elsewhere", (url) => ({ issuer: url, jwks_uri: "http://192.0.2.1/" })],
    ["names keys in a file", (url) => ({ issuer: url, jwks_uri: "file:///etc/passwd" })],
    ["names keys that are not there", (url) => ({ issuer: url, jwks_uri: `${url}/none` })],
    ["is a list", () => []],
  ];
  for (const [what, metadata] of BROKEN) {
    test(`is refused at once if its document ${what}`, async (t) => {
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

  test("may publish keys in 64 KiB, and no more", async (t) => {
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
  test("opens what its scopes open, for a principal that stays the same", async () => {
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

  test("is one principal, though the first tokens come at once at both processes", async () => {
    const tokens = Array.from({ length: 20 }, () => issuer.token({ sub: "crowd" }));
    const all = await Promise.all(
      tokens.map((token, at) => whoami(token, at % 2 ? first : second)),
    );
    assert.equal(new Set(all.map(({ sub }) => sub)).size, 1);
  });

  test("administers where its issuer may, by name", async (t) => {
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
    test(`is verified by ${alg}`, async (t) => {
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

  test("is forged in none of the ways that are known", async () => {
    const token = issuer.token();
    assert.equal(await first.isAlive(token), true);
    const jwk = { ...issuer.key.jwk, kid: issuer.key.kid };
    for (const [what, forged] of forgedTokens({ token, jwk })) {
      const response = await first.api.get("/authorization/whoami", bearer(forged))
        .catch(() => undefined); // what no header can hold
      assert.notEqual(response?.status, 200, what);
    }
  });

  test("is taken by each of its keys, though two of different kinds have one kid", async (t) => {
    const own = await another();
    t.after(() => own.close());
    const rsa = newForeignKey("f1", "RS256");
    own.publish([own.key.jwk, rsa.jwk]);
    assert.equal(await first.isAlive(own.token()), true);
    assert.equal(await first.isAlive(own.token({}, {}, rsa)), true);
    assert.equal(await first.isAlive(own.token({}, { alg: "ES256" }, rsa)), false);
  });

  test("of one issuer is not another's, though their keys have one kid", async (t) => {
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

  test("does not speak for this service, nor this service's keys for its issuer", async () => {
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

  test("of an issuer that nobody has registered is refused, and not asked for", async (t) => {
    const stranger = await startForeignIssuer(first.issuer);
    t.after(() => stranger.close());
    assert.equal(await first.isAlive(stranger.token()), false);
    assert.equal(stranger.receiver.count(), 0);
  });

  test("is no login: own tokens are for users alone", async () => {
    for (const path of ["token", "account", "grant"]) {
      const response = await first.api.get(`/consumer/${path}`, bearer(issuer.token()));
      assert.equal(response.status, 403, path);
    }
  });

  test("that has been presented to be revoked is refused from then on, alone", async () => {
    const [token, other] = [issuer.token(), issuer.token()];
    assert.equal(await first.isAlive(token), true);
    assert.equal(await second.isAlive(token), true);
    await expectStatus(200, first.api.postForm("/authorization/revoke", {}, bearer(token)));
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    assert.equal(await second.isAlive(other), true);
  });

  test("is revoked whatever part of a second it ends at", async () => {
    const token = issuer.token({ exp: Math.floor(Date.now() / 1000) + 600.1234567 });
    assert.equal(await first.isAlive(token), true);
    await expectStatus(200, first.api.postForm("/authorization/revoke", {}, bearer(token)));
    assert.equal(await first.isAlive(token), false);
  });

  test("is active for a resource server, and for an app that did not get it not", async () => {
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

describe("a principal", () => {
  test("subscribes, is the subject of events, and is called back", async () => {
    const token = issuer.token({ sub: "carol" });
    const { sub } = await whoami(token);
    await expectStatus(201, subscribe(token, "order.carol"));
    await dispatch("order.carol", { subject: sub });
    const [received] = await receiver.waitFor(1, 5_000, "/order.carol");
    assert.equal(received?.body.toString(), "1");
    const list = readObject(await first.api.get("/consumer/subscription", bearer(token)));
    assert.equal(Array.isArray(list["items"]) && list["items"].length, 1);
  });

  test("is listed with its issuer, and found by it", async () => {
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

  test("that is disabled is refused at once, at the other process soon", async () => {
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

  test("that is deleted is another one when it comes again", async () => {
    const token = issuer.token({ sub: "frank" });
    const { sub } = await whoami(token);
    const { id } = readObject(await expectStatus(201, subscribe(token, "order.frank")));
    await expectStatus(204, call("DELETE", `/backend/principal/${sub}`));
    assert.notEqual((await whoami(token))["sub"], sub);
    await expectStatus(404, call("GET", `/backend/subscription/${id}`));
    await expectStatus(404, call("DELETE", `/backend/principal/${sub}`));
    // An owner of other names would end what is not a principal's.
    await expectStatus(404, call("PATCH", "/backend/principal/login", { status: "disabled" }));
  });
});

describe("an issuer that is changed", () => {
  test("is refused at once when it is disabled, and its principals called no more", async (t) => {
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

  test("takes scopes away from tokens that are good already, and ends what has them", async (t) => {
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

  test("may move its keys, and moves nothing where none are there", async (t) => {
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
  test("that are new are fetched once for all who present one", async (t) => {
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
    // Within the minute it is not asked again, whatever kid comes.
    assert.equal(await first.isAlive(own.token({}, {}, later)), false);
    assert.equal(own.receiver.count("/keys"), before + 2);
  });

  const ODD: readonly (readonly [what: string, reaction: Parameters<Receiver["react"]>[1]])[] = [
    ["has no end", { kind: "endless" }],
    ["redirects", { kind: "answer", status: 302, headers: { location: "/elsewhere" } }],
    ["is gone", { kind: "reset" }],
    ["has no keys", { kind: "answer", status: 200, body: '{"keys":{}}' }],
  ];
  for (const [what, reaction] of ODD) {
    test(`refuse its tokens if their place ${what}, and no other's`, async (t) => {
      const own = await another();
      t.after(() => own.close());
      own.receiver.react("/keys", reaction);
      const response = await first.api.get("/authorization/whoami", bearer(own.token()));
      assert.equal(response.status, 401);
      assert.equal(await first.isAlive(issuer.token()), true);
    });
  }

  test("that hang keep nobody else waiting", async (t) => {
    const own = await another();
    t.after(() => own.close());
    own.receiver.react("/keys", { kind: "hang" });
    let isDone = false;
    const hanging = first.api.get("/authorization/whoami", bearer(own.token()))
      .finally(() => isDone = true);
    await own.receiver.waitFor(2, 5_000, "/keys"); // the second is the token's
    for (let turn = 0; turn < 5; turn++) assert.equal(await first.isAlive(issuer.token()), true);
    assert.equal(await first.isAlive(first.adminToken), true);
    assert.equal(isDone, false);
    assert.equal((await hanging).status, 401);
  });
});
