// On SQLite alone: it is about documents that do not come from the database.
import assert from "node:assert/strict";
import { createPublicKey, type JsonWebKeyInput, verify } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { DEVICE_GRANT } from "../helpers/device.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { sendRaw } from "../helpers/raw_http.ts";
import { decodeJwt, readObject } from "../helpers/responses.ts";

const SERVER = "/.well-known/oauth-authorization-server";
const OPENID = "/.well-known/openid-configuration";
const RESOURCE = "/.well-known/oauth-protected-resource";
const JWKS = "/.well-known/jwks.json";

type Jwk = JsonWebKeyInput["key"] & {
  readonly kid: string;
  readonly alg: string;
  readonly use: string;
  readonly kty: string;
};

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: ENDPOINTS } });
});
after(() => gatepost.stop());

async function readKeys(at: Gatepost): Promise<Jwk[]> {
  const response = await at.api.get(JWKS);
  assert.equal(response.status, 200);
  const { keys }: { keys: Jwk[] } = JSON.parse(response.text);
  return keys;
}

describe("server metadata (RFC 8414 §2, §3.2)", () => {
  let response: ClientResponse;
  let metadata: Readonly<Record<string, unknown>>;
  before(async () => {
    response = await gatepost.api.get(SERVER);
    metadata = readObject(response);
  });

  test("is JSON, and needs no token", () => {
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type") ?? "", /^application\/json\b/);
  });

  test("has exactly the issuer that tokens have", () => {
    assert.equal(metadata["issuer"], gatepost.issuer);
    assert.equal(decodeJwt(gatepost.adminToken).claims["iss"], metadata["issuer"]);
  });

  const endpoints: [name: string, path: string][] = [
    ["authorization_endpoint", "/authorization/authorize"],
    ["token_endpoint", "/authorization/token"],
    ["device_authorization_endpoint", "/authorization/device"],
    ["revocation_endpoint", "/authorization/revoke"],
    ["introspection_endpoint", "/authorization/introspect"],
    ["userinfo_endpoint", "/authorization/whoami"],
    ["jwks_uri", JWKS],
  ];
  for (const [name, path] of endpoints) {
    test(`has ${name}, which exists`, async () => {
      assert.equal(metadata[name], gatepost.issuer + path);
      assert.notEqual((await gatepost.api.get(path)).status, 404);
    });
  }

  const lists: [name: string, values: string[]][] = [
    ["response_types_supported", ["code"]],
    ["response_modes_supported", ["query"]],
    ["grant_types_supported",
      ["authorization_code", "client_credentials", "password", "refresh_token", DEVICE_GRANT]],
    ["token_endpoint_auth_methods_supported",
      ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"]],
    ["revocation_endpoint_auth_methods_supported",
      ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"]],
    ["introspection_endpoint_auth_methods_supported",
      ["Bearer", "client_secret_basic", "client_secret_post", "private_key_jwt"]],
    ["token_endpoint_auth_signing_alg_values_supported", ["ES256", "EdDSA", "RS256"]],
    ["revocation_endpoint_auth_signing_alg_values_supported", ["ES256", "EdDSA", "RS256"]],
    ["introspection_endpoint_auth_signing_alg_values_supported", ["ES256", "EdDSA", "RS256"]],
    ["code_challenge_methods_supported", ["S256"]],
    ["subject_types_supported", ["public"]], // Spring and AppAuth refuse discovery without it
  ];
  for (const [name, values] of lists) {
    test(`has ${name}`, () => {
      const given = metadata[name];
      assert.ok(Array.isArray(given), name);
      assert.deepEqual([...given].sort(), values);
    });
  }

  test("names the scopes of the service", () => {
    const given = metadata["scopes_supported"];
    assert.ok(Array.isArray(given) && given.includes("consumer") && given.includes("backend"));
  });

  test("is also found where OpenID clients look (RFC 8414 §5)", async () => {
    const found = await gatepost.api.get(OPENID);
    assert.deepEqual([found.status, found.text], [200, response.text]);
  });

  test("says that each authorization response has iss (RFC 9207 §3)", () => {
    assert.equal(metadata["authorization_response_iss_parameter_supported"], true);
  });
});

describe("resource metadata (RFC 9728 §2)", () => {
  test("names the resource and its authorization server, which are this service", async () => {
    const response = await gatepost.api.get(RESOURCE);
    assert.equal(response.status, 200);
    const metadata = readObject(response);
    assert.equal(metadata["resource"], gatepost.issuer);
    assert.deepEqual(metadata["authorization_servers"], [gatepost.issuer]);
    assert.deepEqual(metadata["bearer_methods_supported"], ["header"]);
    // A client may request all of these; backend must be requested by name.
    const scopes = metadata["scopes_supported"];
    assert.ok(Array.isArray(scopes) && scopes.includes("consumer") && !scopes.includes("backend"));
  });

  test("is at the URL in a challenge (RFC 9728 §5.1)", async () => {
    const refused = await gatepost.api.get("/authorization/whoami");
    const challenge = refused.headers.get("www-authenticate") ?? "";
    const [, url = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    const metadata = readObject(await gatepost.api.get(url));
    assert.equal(metadata["resource"], `${gatepost.issuer}/authorization/whoami`);
    assert.equal(metadata["scopes_supported"], undefined); // left out if empty (RFC 9728 §3.2)
  });

  const paths: [path: string, scopes: string[] | undefined][] = [
    ["/orders/7", ["orders"]],
    ["/consumer/subscription", ["consumer"]],
    ["/consumer/subscription/s1/delivery", ["consumer"]],
    ["/backend/user", ["backend"]],
    ["/authorization/revoke", undefined],
    ["/openapi.json", undefined],
    ["/system/metrics", undefined],
  ];
  for (const [path, scopes] of paths) {
    test(`of ${path} names it, and the scopes that it needs (RFC 9728 §3.1)`, async () => {
      const response = await gatepost.api.get(RESOURCE + path, { origin: "https://other.example" });
      const metadata = readObject(response);
      assert.equal(metadata["resource"], gatepost.issuer + path);
      assert.deepEqual(metadata["authorization_servers"], [gatepost.issuer]);
      assert.deepEqual(metadata["scopes_supported"], scopes);
      assert.equal(response.headers.get("access-control-allow-origin"), "*");
    });
  }

  test("is 404 for a public or unknown path, and 400 for an invalid one", async () => {
    const none = ["/", "/nothing", "/ping", "/system/health", "/system/ready", "/orders/7/",
      "//orders", RESOURCE];
    for (const path of none) {
      assert.equal((await gatepost.api.get(RESOURCE + path)).status, 404, path);
    }
    for (const path of ["/orders/..", "/orders/%2e%2e/x", "/orders%2f7"]) {
      assert.equal((await sendRaw(gatepost.url, "GET", RESOURCE + path)).status, 400, path);
    }
  });
});

describe("jwks.json (RFC 7517 §5)", () => {
  for (const [alg, kty] of [["ES256", "EC"], ["RS256", "RSA"], ["EdDSA", "OKP"]]) {
    test(`has the public ${alg} key that verifies access tokens, and nothing private`, async () => {
      const at = await startGatepost({ env: { GATEPOST_SIGNING_ALG: alg } });
      try {
        const keys = await readKeys(at);
        const { header, signature } = decodeJwt(at.adminToken);
        const jwk = keys.find(({ kid }) => kid === header["kid"]);
        assert.ok(jwk !== undefined);
        assert.deepEqual([header["alg"], jwk.alg, jwk.use, jwk.kty], [alg, alg, "sig", kty]);
        for (const name of ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]) {
          assert.equal(name in jwk, false, name);
        }
        const key = createPublicKey({ key: jwk, format: "jwk" });
        const signed = Buffer.from(at.adminToken.slice(0, at.adminToken.lastIndexOf(".")));
        const options = { key, dsaEncoding: "ieee-p1363" } as const;
        const bytes = Buffer.from(signature, "base64url");
        assert.equal(verify(alg === "EdDSA" ? null : "sha256", signed, options, bytes), true);
      } finally {
        await at.stop();
      }
    });
  }

  test("has the same keys after a restart", async () => {
    const env = { GATEPOST_BASE_URL: "http://gatepost.test" };
    const first = await startGatepost({ env });
    try {
      const second = await startGatepost({ env, folder: first.server.folder });
      try {
        assert.deepEqual(await readKeys(second), await readKeys(first));
        assert.equal(await second.isAlive(first.adminToken), true);
      } finally {
        await second.stop();
      }
    } finally {
      await first.stop();
    }
  });
});

describe("each metadata document", () => {
  for (const path of [SERVER, OPENID, RESOURCE, JWKS]) {
    test(`${path} may be cached, but not as long as a new key waits before it signs`, async () => {
      const response = await gatepost.api.get(path);
      const control = response.headers.get("cache-control") ?? "";
      const [, seconds = "0"] = /max-age=(\d+)/.exec(control) ?? [];
      assert.ok(Number(seconds) > 0 && Number(seconds) < 600, control);
    });

    test(`${path} responds to HEAD without a body`, async () => {
      const response = await gatepost.api.send("HEAD", path);
      assert.deepEqual([response.status, response.text], [200, ""]);
    });

    test(`${path} refuses POST with Allow`, async () => {
      const response = await gatepost.api.send("POST", path);
      assert.equal(response.status, 405);
      assert.match(response.headers.get("allow") ?? "", /\bGET\b/);
    });
  }
});
