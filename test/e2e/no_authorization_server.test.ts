import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  type ForeignIssuer,
  registerIssuer,
  startForeignIssuer,
} from "../helpers/foreign_issuer.ts";
import {
  type Gatepost,
  SOURCE_ENTRY,
  startGatepost,
  type TestApp,
  type TestUser,
  PASSWORD,
} from "../helpers/gatepost.ts";
import { type Client, createClient } from "../helpers/http_client.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import { expectStatus, readObject } from "../helpers/responses.ts";

const env = {
  GATEPOST_BASE_URL: "http://gatepost.test",
  GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
  GATEPOST_ENDPOINTS: fileURLToPath(new URL("../fixtures/endpoints", import.meta.url)),
};

// One server that issues tokens, which another one on its database must not accept.
let on: Gatepost;
let off: RunningServer;
let api: Client;
let issuer: ForeignIssuer;
let receiver: Receiver;
let user: TestUser;
let app: TestApp;
before(async () => {
  on = await startGatepost({ env });
  issuer = await startForeignIssuer(on.issuer);
  await registerIssuer(on, issuer, { scopes: ["consumer", "orders", "backend"] });
  receiver = await startReceiver();
  user = await on.createUser({ scopes: ["consumer", "orders"] });
  app = await on.createApp();
  off = await startServer({
    entry: SOURCE_ENTRY,
    folder: on.server.folder,
    env: { ...env, GATEPOST_AUTHORIZATION_SERVER: "off" },
  });
  api = createClient(off.url);
});
after(async () => {
  await off.stop();
  await on.stop();
  await Promise.all([issuer.close(), receiver.close()]);
});

describe("without the authorization server", () => {
  const GONE: readonly (readonly [method: string, path: string])[] = [
    ["POST", "/consumer/login"],
    ["GET", "/authorization/authorize"],
    ["POST", "/authorization/authorize"],
    ["POST", "/authorization/token"],
    ["POST", "/authorization/device"],
    ["GET", "/authorization/verify"],
    ["POST", "/authorization/verify"],
    ["GET", "/account"],
    ["POST", "/account"],
    ["GET", "/.well-known/oauth-authorization-server"],
    ["GET", "/.well-known/openid-configuration"],
  ];
  test("every path that issues tokens is 404, and is in no document", async () => {
    const { paths } = readObject(await api.get("/openapi.json"));
    for (const [method, path] of GONE) {
      assert.equal((await api.send(method, path)).status, 404, path);
      assert.ok(!Object.keys(Object(paths)).includes(path), path);
    }
    const login = await api.postJson("/consumer/login", { username: "admin", password: PASSWORD });
    assert.equal(login.status, 404);
    const fields = { token: issuer.token() };
    const revoke = await api.postForm("/authorization/revoke", fields, basicAuth(app));
    assert.equal(revoke.status, 404);
    const servers = readObject(await api.get("/.well-known/oauth-protected-resource"));
    assert.deepEqual(servers["authorization_servers"], [issuer.url]);
    const links = await api.get("/");
    assert.doesNotMatch(links.text, /oauth-authorization-server/);
  });

  test("an empty list of authorization servers is left out (RFC 9728 §3.2)", async () => {
    const none = await startServer({
      entry: SOURCE_ENTRY,
      env: { ...env, GATEPOST_AUTHORIZATION_SERVER: "off" },
    });
    try {
      const path = "/.well-known/oauth-protected-resource";
      const metadata = readObject(await createClient(none.url).get(path));
      assert.equal("authorization_servers" in metadata, false);
    } finally {
      await none.stop();
    }
  });

  test("a token of this service is inactive, and one of the issuer is active", async () => {
    const reader = await on.createApp({ resource_server: true });
    const own = await on.codeTokens(app, user);
    const as = basicAuth(reader);
    const isActive = async (token: string, client = api) => {
      const response = await client.postForm("/authorization/introspect", { token }, as);
      return readObject(response)["active"];
    };
    for (const token of [own.access_token, own.refresh_token]) {
      assert.deepEqual([await isActive(token, on.api), await isActive(token)], [true, false]);
    }
    assert.equal(await isActive(issuer.token()), true);
  });

  test("a token of this service is refused", async () => {
    const login = await on.login(user);
    const body = { name: "script", scopes: ["consumer"], expires_in: 60 };
    const made = await expectStatus(201, on.api.postJson("/consumer/token", body, bearer(login)));
    const tokens = [login, on.adminToken, String(readObject(made)["token"])];
    for (const token of tokens) {
      assert.equal(await on.isAlive(token), true);
      assert.equal((await api.get("/authorization/whoami", bearer(token))).status, 401);
    }
  });

  test("a token of the issuer can call, subscribe, administer and revoke itself", async () => {
    const headers = bearer(issuer.token({ scope: "consumer orders backend" }));
    const endpoint = `${receiver.url}/orders`;
    await expectStatus(201,
      api.postJson("/consumer/subscription", { event: "order.created", endpoint }, headers));
    const placed = await api.postJson("/orders/7", { item: "book" }, headers);
    assert.ok(placed.status < 300, placed.text);
    await receiver.waitFor(1, 5_000, "/orders");
    await expectStatus(200, api.get("/backend/issuer", headers));
    await expectStatus(200, api.postForm("/authorization/revoke", {}, headers));
    assert.equal((await api.get("/authorization/whoami", headers)).status, 401);
  });
});

test("a server that can accept no token says so in its log", async () => {
  const server = await startServer({
    entry: SOURCE_ENTRY,
    env: { GATEPOST_AUTHORIZATION_SERVER: "off" },
  });
  await server.stop();
  assert.match(server.lines.join("\n"), /no issuer is active/);
});
