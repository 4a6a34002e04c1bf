import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import { type App, parseAppChange, parseNewApp } from "../../src/oauth/app.ts";
import { badAppUrls, goodAppUrls } from "../corpus/redirect_uris.ts";

const minimal = { name: "Shop", url: "https://shop.example/app" };

/** The pointers of every fault that is found, sorted. */
function faultsOf(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    return error.errors.map(({ pointer }) => pointer).sort();
  }
}

describe("parseNewApp() (contract 5, 10)", () => {
  test("fills in what was not said", () => {
    assert.deepEqual(parseNewApp(minimal), {
      ...minimal,
      type: "confidential",
      scopes: ["consumer"],
      grants: ["authorization_code", "refresh_token", "client_credentials"],
      redirectUris: [],
      trusted: false,
      resourceServer: false,
    });
  });

  test("gives a public app no client_credentials (RFC 6749 §4.4)", () => {
    const { grants } = parseNewApp({ ...minimal, type: "public" });
    assert.deepEqual(grants, ["authorization_code", "refresh_token"]);
  });

  test("takes what was said", () => {
    const app = parseNewApp({
      ...minimal,
      type: "confidential",
      scopes: ["orders", "orders", "backend"],
      grants: ["password"],
      redirect_uris: ["https://shop.example/app/cb"],
      trusted: true,
      resource_server: true,
    });
    assert.deepEqual(app, {
      ...minimal,
      type: "confidential",
      scopes: ["orders", "backend"],
      grants: ["password"],
      redirectUris: ["https://shop.example/app/cb"],
      trusted: true,
      resourceServer: true,
    });
  });

  test("takes every good app URL", () => {
    for (const url of goodAppUrls) assert.equal(parseNewApp({ name: "x", url }).url, url);
  });

  test("refuses every bad app URL", () => {
    for (const [url, what] of badAppUrls) {
      assert.deepEqual(faultsOf(() => parseNewApp({ name: "x", url })), ["/url"], what);
    }
  });

  const refused: [what: string, change: Readonly<Record<string, unknown>>, pointers: string[]][] = [
    ["no name", { name: undefined }, ["/name"]],
    ["an empty name", { name: "" }, ["/name"]],
    ["a name of spaces", { name: "  " }, ["/name"]],
    ["a name of 101 characters", { name: "x".repeat(101) }, ["/name"]],
    ["a name with a line feed", { name: "a\nb" }, ["/name"]],
    ["no url", { url: undefined }, ["/url"]],
    ["an unknown type", { type: "native" }, ["/type"]],
    ["a scope with a space", { scopes: ["a b"] }, ["/scopes/0"]],
    ["a scope with a comma", { scopes: ["ok", "a,b"] }, ["/scopes/1"]],
    ["scopes in text", { scopes: "consumer" }, ["/scopes"]],
    ["an unknown grant", { grants: ["implicit"] }, ["/grants/0"]],
    ["client_credentials for a public app", { type: "public", grants: ["client_credentials"] },
      ["/grants/0"]],
    ["a foreign redirect URI", { redirect_uris: ["https://evil.example/"] }, ["/redirect_uris/0"]],
    ["a redirect URI above the app URL", { redirect_uris: ["https://shop.example/"] },
      ["/redirect_uris/0"]],
    ["trusted in text", { trusted: "true" }, ["/trusted"]],
    ["a public resource server", { type: "public", resource_server: true }, ["/resource_server"]],
    ["a client_id of its own", { client_id: "a1" }, ["/client_id"]],
    ["a secret of its own", { client_secret: "x" }, ["/client_secret"]],
    ["several faults", { name: 1, type: 2, url: 3 }, ["/name", "/type", "/url"]],
  ];
  for (const [what, change, pointers] of refused) {
    test(`refuses ${what}`, () => {
      const text = JSON.stringify({ ...minimal, ...change });
      assert.deepEqual(faultsOf(() => parseNewApp(JSON.parse(text))), pointers);
    });
  }
});

describe("parseAppChange() (contract 10)", () => {
  const app: App = {
    ...parseNewApp({ ...minimal, redirect_uris: ["https://shop.example/app/cb"] }),
    id: "a1",
    status: "active",
    createdAtMs: 0,
    cutAtMs: 0,
  };

  test("leaves what was not said", () => {
    assert.deepEqual(parseAppChange({}, app), app);
  });

  test("changes what was said", () => {
    const change = { name: "Shop 2", scopes: [], trusted: true, status: "disabled" };
    assert.deepEqual(parseAppChange(change, app), { ...app, ...change });
  });

  test("takes a new url together with redirect URIs that fit it", () => {
    const url = "https://shop2.example";
    const changed = parseAppChange({ url, redirect_uris: [`${url}/cb`] }, app);
    assert.deepEqual([changed.url, changed.redirectUris], [url, [`${url}/cb`]]);
  });

  test("takes a new url and no list", () => {
    const url = "https://shop2.example";
    assert.deepEqual(parseAppChange({ url, redirect_uris: [] }, app).redirectUris, []);
  });

  const refused: [what: string, change: unknown, pointers: string[]][] = [
    ["a url that the listed redirect URIs do not fit", { url: "https://shop2.example" }, ["/url"]],
    ["a redirect URI that does not fit", { redirect_uris: ["https://shop.example/other"] },
      ["/redirect_uris/0"]],
    ["another type", { type: "public" }, ["/type"]],
    ["an unknown status", { status: "gone" }, ["/status"]],
    ["null for a name", { name: null }, ["/name"]],
    ["another client_id", { client_id: "a2" }, ["/client_id"]],
    ["a list", [], [""]],
  ];
  for (const [what, change, pointers] of refused) {
    test(`refuses ${what}`, () => {
      assert.deepEqual(faultsOf(() => parseAppChange(change, app)), pointers);
    });
  }

  test("refuses to make a public app a resource server", () => {
    const publicApp: App = { ...app, type: "public", grants: ["authorization_code"] };
    const parse = () => parseAppChange({ resource_server: true }, publicApp);
    assert.deepEqual(faultsOf(parse), ["/resource_server"]);
  });
});
