// On SQLite alone: it is about headers, not about the database.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));
const APP_ORIGIN = "https://app.example";
const EXTRA_ORIGIN = "https://extra.example:8443";
const FORM = { "content-type": "application/x-www-form-urlencoded" };

let gatepost: Gatepost;
before(async () => {
  const env = { GATEPOST_ENDPOINTS: ENDPOINTS, GATEPOST_CORS_ORIGINS: EXTRA_ORIGIN };
  gatepost = await startGatepost({ env });
  await gatepost.createApp({ url: `${APP_ORIGIN}/deep/path` });
});
after(() => gatepost.stop());

const preflight = (path: string, origin: string, method = "POST"): Promise<ClientResponse> =>
  gatepost.api.send("OPTIONS", path, {
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": "authorization,content-type",
    },
  });

const allowed = (response: ClientResponse) => response.headers.get("access-control-allow-origin");

const open: [method: string, path: string][] = [
  ["POST", "/authorization/token"],
  ["POST", "/authorization/revoke"],
  ["GET", "/authorization/whoami"],
  ["POST", "/consumer/login"],
  ["POST", "/consumer/subscription"],
  ["GET", "/consumer/subscription"],
  ["DELETE", "/consumer/subscription/s1"],
  ["GET", "/orders"],
  ["POST", "/orders/1"],
  ["GET", "/ping"],
];

const PUBLIC = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/jwks.json",
  "/openapi.json",
];

const closed: [method: string, path: string][] = [
  ["GET", "/authorization/authorize"],
  ["POST", "/authorization/authorize"],
  ["GET", "/backend/user"],
  ["POST", "/backend/app"],
  ["DELETE", "/backend/app/a1"],
];

describe("CORS is open to a registered app's origin (Fetch standard §3.2)", () => {
  for (const [method, path] of open) {
    test(`by preflight for ${method} ${path}`, async () => {
      const response = await preflight(path, APP_ORIGIN, method);
      assert.ok(response.status >= 200 && response.status < 300, String(response.status));
      assert.equal(allowed(response), APP_ORIGIN);
      const methods = response.headers.get("access-control-allow-methods") ?? "";
      assert.ok(methods.split(/, */).includes(method), methods);
      const headers = (response.headers.get("access-control-allow-headers") ?? "").toLowerCase();
      assert.ok(["authorization", "content-type"].every((name) => headers.includes(name)), headers);
      assert.match(response.headers.get("vary") ?? "", /\borigin\b/i);
    });

    test(`in the response to ${method} ${path}, even if it is an error`, async () => {
      const headers = { origin: APP_ORIGIN, ...FORM };
      const response = await gatepost.api.send(method, path, { headers });
      assert.equal(allowed(response), APP_ORIGIN, response.text);
      assert.match(response.headers.get("vary") ?? "", /\borigin\b/i);
    });
  }

  test("for a token request of Swagger UI, with X-Requested-With", async () => {
    const response = await gatepost.api.send("OPTIONS", "/authorization/token", {
      headers: {
        origin: APP_ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-requested-with",
      },
    });
    assert.equal(allowed(response), APP_ORIGIN);
    const headers = response.headers.get("access-control-allow-headers") ?? "";
    assert.match(headers, /(^|, )X-Requested-With(,|$)/);
  });

  test("which may read WWW-Authenticate and Retry-After", async () => {
    const headers = { origin: APP_ORIGIN };
    const response = await gatepost.api.get("/consumer/subscription", headers);
    const exposed = (response.headers.get("access-control-expose-headers") ?? "").toLowerCase();
    assert.ok(exposed.includes("www-authenticate"), exposed);
    assert.ok(exposed.includes("retry-after"), exposed);
  });

  test("and to an origin of GATEPOST_CORS_ORIGINS", async () => {
    assert.equal(allowed(await preflight("/consumer/login", EXTRA_ORIGIN)), EXTRA_ORIGIN);
  });
});

describe("CORS is open to every origin for", () => {
  for (const path of PUBLIC) {
    test(`${path}, with any request header`, async () => {
      for (const origin of [APP_ORIGIN, "https://stranger.example", "null"]) {
        const response = await gatepost.api.get(path, { origin });
        assert.equal(allowed(response), "*");
        // A cache may use one response for all origins.
        assert.doesNotMatch(response.headers.get("vary") ?? "", /\borigin\b/i);
        const asked = await preflight(path, origin, "GET");
        assert.deepEqual([asked.status, allowed(asked)], [204, "*"]);
        // "*" stands for every name but Authorization (Fetch standard §3.2.3).
        assert.equal(asked.headers.get("access-control-allow-headers"), "*, Authorization");
        assert.match(asked.headers.get("access-control-allow-methods") ?? "", /\bGET\b/);
      }
    });
  }
});

describe("CORS is never open", () => {
  for (const [method, path] of closed) {
    test(`for ${method} ${path}, by preflight or response`, async () => {
      for (const origin of [APP_ORIGIN, EXTRA_ORIGIN]) {
        assert.equal(allowed(await preflight(path, origin, method)), null);
        const headers = { origin, ...bearer(gatepost.adminToken) };
        const response = await gatepost.api.send(method, path, { headers });
        assert.equal(allowed(response), null);
      }
    });
  }

  const origins = [
    "https://evil.example",
    "https://app.example.evil.example",
    "https://evilapp.example",
    "https://sub.app.example",
    "https://app.example:443",
    "https://app.example:8443",
    "http://app.example",
    "https://APP.example",
    "https://app.example/",
    "https://app.example/deep/path",
    "https://extra.example",
    "null",
    "*",
    "file://",
    "",
  ];
  for (const origin of origins) {
    test(`to origin "${origin}"`, async () => {
      assert.equal(allowed(await preflight("/authorization/token", origin)), null);
      const response = await gatepost.api.postForm("/authorization/token", {}, { origin });
      assert.equal(allowed(response), null);
      assert.equal(response.headers.get("access-control-allow-methods"), null);
    });
  }

  test("with cookies: no Access-Control-Allow-Credentials anywhere", async () => {
    const all = [...open, ...closed, ...PUBLIC.map((path): [string, string] => ["GET", path])];
    for (const [method, path] of all) {
      const headers = { origin: APP_ORIGIN };
      for (const response of [
        await preflight(path, APP_ORIGIN, method),
        await gatepost.api.send(method, path, { headers }),
      ]) {
        assert.equal(response.headers.get("access-control-allow-credentials"), null, path);
      }
    }
  });

  test("to the origin of an app that is disabled or deleted", async () => {
    const app = await gatepost.createApp({ url: "https://brief.example" });
    const isOpen = async () =>
      allowed(await preflight("/consumer/login", "https://brief.example")) !== null;
    assert.equal(await isOpen(), true);
    await gatepost.change(app, { status: "disabled" });
    assert.equal(await isOpen(), false);
    await gatepost.change(app, { status: "active" });
    assert.equal(await isOpen(), true);
    const headers = bearer(gatepost.adminToken);
    await gatepost.api.send("DELETE", `/backend/app/${app.id}`, { headers });
    assert.equal(await isOpen(), false);
  });

  test("to the former origin of an app whose URL has changed", async () => {
    const app = await gatepost.createApp({ url: "https://former.example" });
    await gatepost.change(app, { url: "https://later.example" });
    assert.equal(allowed(await preflight("/consumer/login", "https://former.example")), null);
    const later = "https://later.example";
    assert.equal(allowed(await preflight("/consumer/login", later)), later);
  });
});

test("a request without Origin gets its usual response, with Vary: Origin", async () => {
  const app = await gatepost.createApp();
  const fields = { grant_type: "client_credentials" };
  const response = await gatepost.api.postForm("/authorization/token", fields, basicAuth(app));
  assert.equal(response.status, 200);
  assert.equal(allowed(response), null);
  assert.match(response.headers.get("vary") ?? "", /\borigin\b/i);
});
