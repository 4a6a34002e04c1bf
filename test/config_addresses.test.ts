import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig } from "../src/config.ts";
import { configOf, errorOf, errorsOf } from "./helpers/config.ts";

test("parseConfig() accepts the nodes of a cluster, but no credentials in their URL", () => {
  const cases = [
    ["rqlite://127.0.0.1:4001", false, ["127.0.0.1:4001"]],
    ["rqlites://db1.internal:4001,[::1]:4001", true, ["db1.internal:4001", "[::1]:4001"]],
  ] as const;
  for (const [address, isTls, nodes] of cases) {
    const config = configOf({ GATEPOST_DATABASE: address });
    assert.deepEqual(config.database, { kind: "rqlite", nodes, isTls });
    const shown = describeConfig(config).find(({ name }) => name === "GATEPOST_DATABASE");
    assert.equal(shown?.value, address);
  }
  assert.match(errorOf("DATABASE", "rqlite://a:b@h:1"), /GATEPOST_DATABASE_CREDENTIALS/);
});

test("parseConfig() refuses a path with ~/, quotes or a variable, which a shell replaces", () => {
  for (const name of ["DATABASE", "ENDPOINTS"]) {
    assert.match(errorOf(name, "~/gatepost"), /is not the path of a/);
    assert.deepEqual(errorsOf({ [`GATEPOST_${name}`]: "~gatepost/x" }), []);
    for (const path of ['"/data/gatepost"', "'/data/gatepost'", "$HOME/gatepost"]) {
      assert.match(errorOf(name, path), /is not the path of a/); // as Docker's --env-file leaves it
    }
  }
});

test("parseConfig() refuses a console listener at the address of the server itself", () => {
  const at = (port: string, console: string) =>
    errorsOf({ GATEPOST_PORT: port, GATEPOST_CONSOLE: console });
  assert.match(at("8080", "127.0.0.1:8080").join(), /^GATEPOST_CONSOLE: /);
  assert.deepEqual([at("8080", "127.0.0.1:65535"), at("0", "127.0.0.1:0")], [[], []]);
});

test("parseConfig() refuses a console port that GATEPOST_SHARE_PORT would share", () => {
  const at = (port: string, console: string) =>
    errorsOf({ GATEPOST_SHARE_PORT: "on", GATEPOST_PORT: port, GATEPOST_CONSOLE: console });
  assert.match(at("8080", "localhost:8080").join(), /^GATEPOST_CONSOLE: /);
  assert.deepEqual([at("8080", "localhost:9090"), at("0", "localhost:0")], [[], []]);
});

test("parseConfig() accepts a canonical GATEPOST_BASE_URL unchanged", () => {
  const cases = [
    "http://localhost:8080",
    "https://api.example.com",
    "https://api.example.com:8443",
    "https://api.example.com/gate",
    "https://api.example.com/a/b-c_d.e~f",
    "http://[::1]:8080",
    "http://192.0.2.1",
  ];
  for (const value of cases) assert.equal(configOf({ GATEPOST_BASE_URL: value }).baseUrl, value);
});

test("parseConfig() refuses any other GATEPOST_BASE_URL and says why", () => {
  const cases: [value: string, why: RegExp][] = [
    ["api.example.com", /absolute http or https/],
    ["//api.example.com", /absolute http or https/],
    ["/gate", /absolute http or https/],
    ["ftp://api.example.com", /absolute http or https/],
    ["javascript:alert(1)", /absolute http or https/],
    ["https:api.example.com", /absolute http or https/],
    ["https://", /absolute http or https/],
    ["https://api.example.com:99999", /absolute http or https/],
    [`https://api.example.com/${"x".repeat(2_048)}`, /absolute http or https/],
    ["https://api.example.com/", /canonical form; write "https:\/\/api\.example\.com"$/],
    ["https://api.example.com/gate/", /write "https:\/\/api\.example\.com\/gate"$/],
    ["https://API.example.com", /write "https:\/\/api\.example\.com"$/],
    ["HTTPS://api.example.com", /write "https:\/\/api\.example\.com"$/],
    ["https://api.example.com:443", /write "https:\/\/api\.example\.com"$/],
    ["http://api.example.com:80", /write "http:\/\/api\.example\.com"$/],
    ["https://bücher.example", /write "https:\/\/xn--bcher-kva\.example"$/],
    ["https://api.example.com/a/../b", /write "https:\/\/api\.example\.com\/b"$/],
    ["https://api.example.com\\gate", /write "https:\/\/api\.example\.com\/gate"$/],
    [" https://api.example.com", /absolute http or https/],
    ["https://api.example.com\n", /write "https:\/\/api\.example\.com"$/],
    ["http://127.1:80", /write "http:\/\/127\.0\.0\.1"$/],
    ["https://api.example.com?x=1", /query or a fragment/],
    ["https://api.example.com?", /query or a fragment/],
    ["https://api.example.com/#", /query or a fragment/],
    ["https://user@api.example.com", /credentials/],
    ["https://:@api.example.com", /credentials/],
    ["https://api.example.com//gate", /path/],
    ["https://api.example.com/a%2fb", /path/],
    ["https://api.example.com/a;b", /path/],
    ["http://0.0.0.0:8080", /wildcard/],
    ["http://[::]:8080", /wildcard/],
    ["http://0:8080", /wildcard/],
  ];
  for (const [value, why] of cases) assert.match(errorOf("BASE_URL", value), why);
});

test("parseConfig() requires GATEPOST_BASE_URL for every spelling of a wildcard address", () => {
  const cases = [
    "0.0.0.0", "0", "0x0", "0.0", "000.0.0.0", "::", "::0", "0::0", "0:0:0:0:0:0:0:0", "::0.0.0.0",
    "::ffff:0.0.0.0", "::FFFF:0:0", "0000:0000:0000:0000:0000:0000:0000:0000",
  ];
  for (const host of cases) {
    const errors = errorsOf({ GATEPOST_HOST: host });
    assert.equal(errors.length, 1, host);
    assert.match(errors[0] ?? "", /^GATEPOST_BASE_URL: is required/, host);
    const env = { GATEPOST_HOST: host, GATEPOST_BASE_URL: "https://api.example.com" };
    assert.equal(configOf(env).baseUrl, "https://api.example.com", host);
  }
});

test("parseConfig() needs no GATEPOST_BASE_URL for an address that is not a wildcard", () => {
  for (const host of ["127.0.0.1", "::1", "localhost", "192.0.2.1", "2001:db8::1", "my-host.x"]) {
    assert.equal(configOf({ GATEPOST_HOST: host }).host, host);
  }
});
