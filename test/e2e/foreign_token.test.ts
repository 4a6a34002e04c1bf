import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { forgedTokens } from "../corpus/jwts.ts";
import { newForeignKey, startForeignIssuer, waitUntilAlive } from "../helpers/foreign_issuer.ts";
import { startGatepost, waitUntilDead } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";
import { expectStatus, readObject } from "../helpers/responses.ts";
import { ENV, startForeignStage } from "./foreign_stage.ts";

type Body = Readonly<Record<string, unknown>>;

const stage = await startForeignStage();
const { first, issuer, record, call, whoami, another } = stage;
const second = await startGatepost({ env: ENV, folder: first.server.folder });
const receiver = await startReceiver();
after(async () => {
  await second.stop();
  await stage.stop();
  await receiver.close();
});

const subscribe = (token: string, event: string, path = `/${event}`): Promise<ClientResponse> =>
  first.api.postJson("/consumer/subscription", { event, endpoint: receiver.url + path },
    bearer(token));
const dispatch = (name: string, more: Body = {}) =>
  expectStatus(202, call("POST", "/backend/event", { name, data: 1, ...more }));

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
