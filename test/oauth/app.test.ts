import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseShape } from "../../src/base/shape.ts";
import {
  type App,
  AppChange,
  changeApp,
  newApp,
  NewApp,
  toAppRecord,
} from "../../src/oauth/app.ts";
import { sampleApp } from "../helpers/database.ts";
import { pointersOf } from "../helpers/problem.ts";

const MORE = { id: "a0", createdAtMs: 1_000 };
const addApp = (value: unknown) => newApp(parseShape(NewApp, value, "body"), MORE);
const change = (value: unknown, app: App) => changeApp(app, parseShape(AppChange, value, "body"));

const GOOD = { name: "Harbour Orders", url: "https://orders.example/" };

test("newApp() fills in the defaults: confidential, scope consumer", () => {
  assert.deepEqual(addApp(GOOD), {
    ...MORE,
    ...GOOD,
    type: "confidential",
    scopes: ["consumer"],
    grants: ["authorization_code", "refresh_token", "client_credentials"],
    redirectUris: [],
    trusted: false,
    resourceServer: false,
    rate: null,
    owner: null,
    requirePkce: false,
    jwks: [],
    status: "active",
  });
});

test("the schema of a new app has the defaults", () => {
  assert.partialDeepStrictEqual(NewApp.definitions?.["NewApp"]?.["properties"], {
    type: { default: "confidential" },
    scopes: { default: ["consumer"] },
    grants: {
      description: "Absent: authorization_code, refresh_token, client_credentials; " +
        "for a public app all but the last.",
    },
  });
});

test("newApp() gives a public app no client_credentials (RFC 6749 §4.4)", () => {
  const app = addApp({ ...GOOD, type: "public" });
  assert.deepEqual(app.grants, ["authorization_code", "refresh_token"]);
});

test("newApp() keeps the given scopes, grants, redirect URIs and flags", () => {
  const value = {
    ...GOOD,
    type: "confidential",
    scopes: ["orders", "backend"],
    grants: ["password", "client_credentials"],
    redirect_uris: ["https://orders.example/cb", "https://orders.example/other?x=1"],
    trusted: true,
    resource_server: true,
  };
  const app = addApp(value);
  assert.deepEqual(app.scopes, ["orders", "backend"]);
  assert.deepEqual([...app.grants].sort(), ["client_credentials", "password"]);
  assert.deepEqual(app.redirectUris, value.redirect_uris);
  assert.equal(app.trusted, true);
  assert.equal(app.resourceServer, true);
});

test("newApp() accepts empty lists: no scopes, no grants", () => {
  const app = addApp({ ...GOOD, scopes: [], grants: [] });
  assert.deepEqual([app.scopes, app.grants], [[], []]);
});

describe("newApp() names each error of", () => {
  const table: [what: string, value: unknown, pointers: string[]][] = [
    ["a value that is no object", "app", [""]],
    ["an empty object", {}, ["/url", "/name"]],
    ["everything at once", {
      name: 1,
      url: "orders.example",
      type: "native",
      scopes: ["a b"],
      grants: ["implicit"],
      trusted: "yes",
      resource_server: 1,
      client_id: "a1",
    }, ["/client_id", "/grants/0", "/name", "/resource_server", "/scopes/0", "/trusted", "/type",
      "/url"]],
    ["a name of spaces", { ...GOOD, name: "  " }, ["/name"]],
    ["a name of 101 characters", { ...GOOD, name: "x".repeat(101) }, ["/name"]],
    ["a name with a line feed", { ...GOOD, name: "a\nb" }, ["/name"]],
    ["a name with a C1 control", { ...GOOD, name: "a\u0085b" }, ["/name"]],
    ["an http URL of another host", { ...GOOD, url: "http://orders.example/" }, ["/url"]],
    ["a URL with a query", { ...GOOD, url: "https://orders.example/?a=1" }, ["/url"]],
    ["a URL with a fragment", { ...GOOD, url: "https://orders.example/#a" }, ["/url"]],
    ["a URL with a name and a password", { ...GOOD, url: "https://a:b@orders.example/" }, ["/url"]],
    ["a URL in another spelling", { ...GOOD, url: "https://ORDERS.example/" }, ["/url"]],
    ["a URL of another scheme", { ...GOOD, url: "javascript:alert(1)" }, ["/url"]],
    ["client_credentials of a public app",
      { ...GOOD, type: "public", grants: ["client_credentials"] }, ["/grants/0"]],
    ["introspection by a public app", { ...GOOD, type: "public", resource_server: true },
      ["/resource_server"]],
    ["a redirect URI of another origin", { ...GOOD, redirect_uris: ["https://evil.example/cb"] },
      ["/redirect_uris/0"]],
    ["a redirect URI that leaves the app's path", {
      name: "x",
      url: "https://orders.example/app/",
      redirect_uris: ["https://orders.example/app/cb", "https://orders.example/application"],
    }, ["/redirect_uris/1"]],
    ["a redirect URI with a fragment", { ...GOOD, redirect_uris: ["https://orders.example/cb#x"] },
      ["/redirect_uris/0"]],
    ["an empty list of redirect URIs", { ...GOOD, redirect_uris: [] }, ["/redirect_uris"]],
    ["101 redirect URIs", {
      ...GOOD,
      redirect_uris: Array.from({ length: 101 }, (_, at) => `https://orders.example/${at}`),
    }, ["/redirect_uris"]],
    ["a bad URL beside good redirect URIs: only the URL",
      { ...GOOD, url: "x", redirect_uris: ["https://orders.example/cb"] }, ["/url"]],
    ["a bad URL beside redirect URIs that no app may have",
      {
        ...GOOD,
        url: "x",
        redirect_uris: ["/cb", "javascript:x", "http://a.example/", "https://a.example/#"],
      },
      ["/url", "/redirect_uris/0", "/redirect_uris/1", "/redirect_uris/2", "/redirect_uris/3"]],
  ];
  for (const [what, value, pointers] of table) {
    test(what, () => {
      assert.deepEqual(pointersOf(() => addApp(value)).sort(), [...pointers].sort());
    });
  }
});

describe("newApp() accepts", () => {
  const table: [what: string, value: object][] = [
    ["a name of 100 characters", { ...GOOD, name: "x".repeat(100) }],
    ["a name of any script", { ...GOOD, name: "\u6e2f\u53e3 \u{1f511}" }],
    ["http on localhost", { ...GOOD, url: "http://localhost:3000/" }],
    ["http on 127.0.0.1", { ...GOOD, url: "http://127.0.0.1/" }],
    ["http on [::1]", { ...GOOD, url: "http://[::1]:8080/" }],
  ];
  for (const [what, value] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => addApp(value)), []));
  }
});

test("changeApp() keeps the members that are not given", () => {
  const app = sampleApp({ redirectUris: ["https://orders.example/cb"], trusted: true });
  assert.deepEqual(change({}, app), app);
  assert.deepEqual(change({ name: "Harbour", trusted: false }, app), {
    ...app,
    name: "Harbour",
    trusted: false,
  });
});

test("changeApp() changes each member that may change", () => {
  const app = sampleApp();
  const value = {
    name: "Harbour",
    url: "https://harbour.example/",
    scopes: ["a"],
    grants: ["password"],
    redirect_uris: ["https://harbour.example/cb"],
    trusted: true,
    resource_server: true,
    status: "disabled",
  };
  assert.deepEqual(change(value, app), {
    ...app,
    name: "Harbour",
    url: "https://harbour.example/",
    scopes: ["a"],
    grants: ["password"],
    redirectUris: ["https://harbour.example/cb"],
    trusted: true,
    resourceServer: true,
    status: "disabled",
  });
});

describe("changeApp() names each error of", () => {
  const confidential = sampleApp({ redirectUris: ["https://orders.example/cb"] });
  const publicApp = sampleApp({ type: "public", grants: ["authorization_code"] });
  const table: [what: string, value: unknown, app: App, pointers: string[]][] = [
    ["a value that is no object", null, confidential, [""]],
    ["another type, which is fixed", { type: "public" }, confidential, ["/type"]],
    ["another id", { client_id: "a2", id: "a2" }, confidential, ["/client_id", "/id"]],
    ["a secret", { client_secret: "x" }, confidential, ["/client_secret"]],
    ["a URL that the listed redirect URIs do not fit", { url: "https://harbour.example/" },
      confidential, ["/url"]],
    ["a URL with redirect URIs that do not fit it",
      { url: "https://harbour.example/", redirect_uris: ["https://orders.example/cb"] },
      confidential, ["/redirect_uris/0"]],
    ["redirect URIs that do not fit the current URL",
      { redirect_uris: ["https://harbour.example/"] }, confidential, ["/redirect_uris/0"]],
    ["client_credentials for a public app", { grants: ["client_credentials"] }, publicApp,
      ["/grants/0"]],
    ["introspection for a public app", { resource_server: true }, publicApp, ["/resource_server"]],
    ["everything that does not fit together",
      {
        resource_server: true,
        grants: ["password", "client_credentials"],
        url: "https://b.example/",
        redirect_uris: ["https://b.example/cb", "https://orders.example/cb"],
      },
      publicApp, ["/grants/1", "/redirect_uris/1", "/resource_server"]],
    ["null where it removes nothing", { name: null, trusted: null, scopes: null }, confidential,
      ["/name", "/scopes", "/trusted"]],
    ["an invalid rate", { rate: "5 a minute" }, confidential, ["/rate"]],
    ["an unknown status", { status: "deleted" }, confidential, ["/status"]],
  ];
  for (const [what, value, app, pointers] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => change(value, app)).sort(), pointers));
  }
});

test("redirect_uris null removes the list, and the prefix rule holds then", () => {
  const app = sampleApp({ redirectUris: ["https://orders.example/cb"] });
  const changed = change({ redirect_uris: null, url: "https://harbour.example/" }, app);
  assert.deepEqual(changed.redirectUris, []);
  assert.equal(toAppRecord(app).redirect_rule, "listed");
  assert.equal(toAppRecord(changed).redirect_rule, "prefix");
});

test("rate null removes the rate, and a change without rate keeps it", () => {
  const app = sampleApp({ rate: "5/1m" });
  assert.equal(change({ name: "Harbour" }, app).rate, "5/1m");
  assert.equal(change({ rate: "1/1d" }, app).rate, "1/1d");
  assert.equal(change({ rate: null }, app).rate, null);
});

test("toAppRecord() shows the fields of the record, and no secret", () => {
  const stored = { ...sampleApp(), secret: new Uint8Array(32), oldSecret: null };
  assert.deepEqual(toAppRecord(stored), {
    client_id: stored.id,
    name: stored.name,
    url: stored.url,
    type: stored.type,
    scopes: stored.scopes,
    grants: stored.grants,
    redirect_uris: [],
    redirect_rule: "prefix",
    trusted: false,
    resource_server: false,
    rate: null,
    owner: null,
    require_pkce: false,
    jwks: null,
    metadata_url: null,
    status: "active",
    created_at: new Date(stored.createdAtMs).toISOString(),
  });
});
