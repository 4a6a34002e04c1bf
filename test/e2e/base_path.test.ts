// On SQLite alone: it is about paths, not about the database.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { bearer } from "../helpers/requests.ts";
import { decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

const ISSUER = "https://api.example/gate/v1";
const MODULE = `export const where = {
  method: "GET",
  path: "/where/:name",
  public: true,
  handle: ({ request, params }) => [request.url, params.name],
};
`;

let gatepost: Gatepost;
let endpoints: string;
before(async () => {
  endpoints = await mkdtemp(join(tmpdir(), "gatepost-base-path-"));
  await writeFile(join(endpoints, "where.mjs"), MODULE);
  gatepost = await startGatepost({
    env: { GATEPOST_BASE_URL: ISSUER, GATEPOST_ENDPOINTS: endpoints },
  });
});
after(async () => {
  await gatepost.stop();
  await rm(endpoints, { recursive: true });
});

/** A client of the server's root, without the base path. */
const root = () => createClient(gatepost.server.url);

describe("a base URL with a path is the prefix of", () => {
  const paths = [
    "/authorization/whoami",
    "/authorization/authorize",
    "/consumer/subscription",
    "/backend/user",
    "/system/health",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/jwks.json",
  ];
  for (const path of paths) {
    test(`${path}, which is 404 without the prefix`, async () => {
      assert.notEqual((await gatepost.api.get(path)).status, 404);
      assert.equal((await root().get(path)).status, 404);
    });
  }

  test("a hosted endpoint, whose request has the public URL", async () => {
    const { text } = await gatepost.api.get("/where/a%20b?x=1");
    assert.deepEqual(JSON.parse(text), [`${ISSUER}/where/a%20b?x=1`, "a b"]);
  });

  test("no route outside the base path", async () => {
    const { origin } = new URL(gatepost.url);
    for (const path of ["/", "/gate", "/gate/v12/system/health", "/gate/system/health",
      "/GATE/v1/system/health", "/gate/v1/gate/v1/system/health", "/gate//v1/system/health"]) {
      assert.equal((await root().get(origin + path)).status, 404, path);
    }
  });
});

describe("metadata of an issuer with a path", () => {
  const documents: [rfc: string, name: string, member: string][] = [
    ["RFC 8414 §3.1", "oauth-authorization-server", "issuer"],
    ["RFC 8414 §5", "openid-configuration", "issuer"],
    ["RFC 9728 §3.1", "oauth-protected-resource", "resource"],
  ];
  for (const [rfc, name, member] of documents) {
    test(`${name} is also at the inserted path (${rfc})`, async () => {
      const response = await root().get(`/.well-known/${name}/gate/v1`);
      assert.equal(response.status, 200);
      assert.equal(readObject(response)[member], ISSUER);
      assert.equal((await gatepost.api.get(`/.well-known/${name}`)).text, response.text);
    });

    test(`${name} is 404 at any other path`, async () => {
      for (const path of ["/gate", "/gate/v1/", "/gate/v2", "/x/gate/v1", "gate/v1"]) {
        assert.equal((await root().get(`/.well-known/${name}${path}`)).status, 404, path);
      }
    });
  }

  test("is named in a challenge by its inserted path (RFC 9728 §5.1)", async () => {
    const path = "/authorization/whoami";
    const response = await gatepost.api.get(path);
    const url = `https://api.example/.well-known/oauth-protected-resource/gate/v1${path}`;
    const expected = `Bearer realm="gatepost", resource_metadata="${url}"`;
    assert.equal(response.headers.get("www-authenticate"), expected);
  });

  test("of a protected path has that path after the base path (RFC 9728 §3.1)", async () => {
    const name = "/.well-known/oauth-protected-resource";
    const response = await root().get(`${name}/gate/v1/authorization/whoami`);
    assert.equal(readObject(response)["resource"], `${ISSUER}/authorization/whoami`);
    const below = await gatepost.api.get(`${name}/authorization/whoami`);
    assert.equal(below.text, response.text);
    for (const path of ["/authorization/whoami", "/gate/v1/gate/v1/authorization/whoami"]) {
      assert.equal((await root().get(name + path)).status, 404, path);
    }
  });

  test("has only URLs that begin with the issuer", async () => {
    const metadata = readObject(await gatepost.api.get("/.well-known/oauth-authorization-server"));
    const urls = Object.entries(metadata).filter(([name]) => /_endpoint$|_uri$/.test(name));
    assert.ok(urls.length >= 5);
    for (const [name, url] of urls) assert.ok(String(url).startsWith(`${ISSUER}/`), name);
  });
});

describe("under a base URL with a path", () => {
  test("tokens have that URL as issuer and audience", () => {
    const { claims } = decodeJwt(gatepost.adminToken);
    assert.deepEqual([claims["iss"], claims["aud"]], [ISSUER, ISSUER]);
  });

  test("the Location of a new user can be requested", async () => {
    const body = { username: "somebody", password: "long enough" };
    const response = await gatepost.api.postJson(
      "/backend/user",
      body,
      bearer(gatepost.adminToken),
    );
    assert.equal(response.status, 201);
    const location = new URL(response.headers.get("location") ?? "", ISSUER);
    assert.ok(location.pathname.startsWith("/gate/v1/backend/user/u"), location.href);
    const found = await root().get(location.pathname, bearer(gatepost.adminToken));
    assert.equal(found.status, 200);
  });

  test("login and consent lead to a valid code", async () => {
    const [user, app] = [await gatepost.createUser(), await gatepost.createApp()];
    const callback = await allowByHand(user, app);
    assert.equal(callback.searchParams.get("iss"), ISSUER);
    const code = callback.searchParams.get("code") ?? "";
    readTokens(await gatepost.token(app, { grant_type: "authorization_code", code }));
  });
});

/** Passes the pages and carries the cookie itself: over http no client keeps a Secure one. */
async function allowByHand(
  user: { readonly username: string; readonly password: string },
  app: { readonly id: string; readonly redirectUri: string },
): Promise<URL> {
  const query = new URLSearchParams({ client_id: app.id, redirect_uri: app.redirectUri });
  const path = `/gate/v1/authorization/authorize?${query}`;
  const origin = gatepost.server.url;
  let cookie = "";
  const send = async (method: string, fields?: Record<string, string>) => {
    const response = await fetch(origin + path, {
      method,
      redirect: "manual",
      headers: { cookie, "sec-fetch-site": "same-origin" },
      ...(fields && { body: new URLSearchParams(fields) }),
    });
    const [line] = response.headers.getSetCookie();
    if (line !== undefined) cookie = line.slice(0, line.indexOf(";"));
    const text = await response.text();
    assert.doesNotMatch(text, /action="\/authorization/);
    return { text, location: response.headers.get("location") };
  };
  const readToken = (text: string) => /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
  const { username, password } = user;
  const loginPage = await send("GET");
  const loggedIn = await send("POST", { csrf: readToken(loginPage.text), username, password });
  assert.equal(loggedIn.location, path);
  const consentPage = await send("GET");
  const done = await send("POST", { csrf: readToken(consentPage.text), decision: "allow" });
  return new URL(done.location ?? "");
}
