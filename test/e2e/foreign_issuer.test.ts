import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { newForeignKey, registerIssuer, startForeignIssuer } from "../helpers/foreign_issuer.ts";
import type { Receiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { startForeignStage } from "./foreign_stage.ts";

type Body = Readonly<Record<string, unknown>>;

const stage = await startForeignStage();
const { first, issuer, record, call, whoami, another } = stage;
after(() => stage.stop());

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
