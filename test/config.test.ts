import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Config, describeConfig, parseConfig, VARIABLES } from "../src/config.ts";

const SECRET_KEY = Buffer.from("0123456789abcdef0123456789ABCDEF").toString("base64");
const METRICS_TOKEN = "m3tr1cs-t0ken-of-the-test";
const ADMIN_PASSWORD = "correct horse battery";

type Env = Record<string, string | undefined>;

function configOf(env: Env): Config {
  const result = parseConfig(env);
  if (!result.ok) assert.fail(result.errors.join("\n"));
  return result.config;
}

function errorsOf(env: Env): readonly string[] {
  const result = parseConfig(env);
  return result.ok ? [] : result.errors;
}

/** The only error of one variable that has this value, all others being unset. */
function errorOf(name: string, value: string): string {
  const errors = errorsOf({ [`GATEPOST_${name}`]: value });
  assert.equal(errors.length, 1, `${name}=${JSON.stringify(value)}: ${errors.join(" | ")}`);
  const [error = ""] = errors;
  assert.ok(error.startsWith(`GATEPOST_${name}: `), error);
  assert.match(error, /^[\x20-\x7e…]+$/);
  return error;
}

test("parseConfig() returns the documented defaults for an empty environment", () => {
  assert.deepEqual(configOf({}), {
    host: "127.0.0.1",
    port: 8080,
    sharePort: false,
    baseUrl: undefined,
    database: { kind: "file", path: "./data/gatepost.db" },
    databaseCredentials: undefined,
    name: undefined,
    console: "on",
    endpointsFolder: undefined,
    cron: true,
    distributeIntervalMs: 1_000,
    resendDelaysMs: [10_000, 300_000, 3_600_000],
    callbackTimeoutMs: 10_000,
    callbackConcurrency: 64,
    callbackConcurrencyPerSubscription: 8,
    callbackAllow: [],
    accessTokenTtlMs: 3_600_000,
    refreshTokenTtlMs: 30 * 86_400_000,
    codeTtlMs: 60_000,
    signingAlg: "ES256",
    profile: "none",
    authorizationServer: true,
    clientMetadata: "off",
    secretKeys: undefined,
    trustedProxies: [],
    corsOrigins: [],
    rateLimit: undefined,
    maxBodyBytes: 1_048_576,
    maxPayloadBytes: 262_144,
    retentionMs: 30 * 86_400_000,
    disableAfterMs: 5 * 86_400_000,
    metricsToken: undefined,
    logLevel: "info",
    adminPassword: undefined,
  });
});

test("parseConfig() treats an empty value as unset, or as an empty list of resend delays", () => {
  const env = Object.fromEntries(VARIABLES.map(({ name }) => [name, ""]));
  assert.deepEqual(configOf(env), { ...configOf({}), resendDelaysMs: [] });
});

test("parseConfig() reads every variable", () => {
  const config = configOf({
    GATEPOST_HOST: "::1",
    GATEPOST_PORT: "0",
    GATEPOST_SHARE_PORT: "on",
    GATEPOST_BASE_URL: "https://api.example.com/gate",
    GATEPOST_DATABASE: "/var/lib/gatepost/db.sqlite",
    GATEPOST_DATABASE_CREDENTIALS: "gate:fo:rty",
    GATEPOST_NAME: "Größe & Söhne 📦",
    GATEPOST_CONSOLE: "[::1]:9090",
    GATEPOST_ENDPOINTS: "./endpoints",
    GATEPOST_CRON: "off",
    GATEPOST_DISTRIBUTE_INTERVAL: "500ms",
    GATEPOST_RESEND_DELAYS: "1s, 2m",
    GATEPOST_CALLBACK_TIMEOUT: "3s",
    GATEPOST_CALLBACK_CONCURRENCY: "10",
    GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "2",
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8, ::1/128",
    GATEPOST_ACCESS_TOKEN_TTL: "5m",
    GATEPOST_REFRESH_TOKEN_TTL: "12h",
    GATEPOST_CODE_TTL: "30s",
    GATEPOST_SIGNING_ALG: "EdDSA",
    GATEPOST_PROFILE: "2.1",
    GATEPOST_AUTHORIZATION_SERVER: "off",
    GATEPOST_CLIENT_METADATA: "app.example, vscode.dev",
    GATEPOST_SECRET_KEY: SECRET_KEY,
    GATEPOST_TRUSTED_PROXIES: "10.0.0.0/8",
    GATEPOST_CORS_ORIGINS: "https://a.example,http://localhost:3000",
    GATEPOST_RATE_LIMIT: "100/1m",
    GATEPOST_MAX_BODY: "2MiB",
    GATEPOST_MAX_PAYLOAD: "64KiB",
    GATEPOST_RETENTION: "7d",
    GATEPOST_DISABLE_AFTER: "0",
    GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
    GATEPOST_LOG_LEVEL: "debug",
    GATEPOST_ADMIN_PASSWORD: ADMIN_PASSWORD,
  });
  const { callbackAllow, trustedProxies, secretKeys, ...rest } = config;
  assert.equal(callbackAllow.length, 2);
  assert.equal(trustedProxies.length, 1);
  assert.equal(Buffer.from(secretKeys?.[0] ?? []).toString(), "0123456789abcdef0123456789ABCDEF");
  assert.deepEqual(rest, {
    host: "::1",
    port: 0,
    sharePort: true,
    baseUrl: "https://api.example.com/gate",
    database: { kind: "file", path: "/var/lib/gatepost/db.sqlite" },
    databaseCredentials: "gate:fo:rty",
    name: "Größe & Söhne 📦",
    console: { host: "::1", port: 9090 },
    endpointsFolder: "./endpoints",
    cron: false,
    distributeIntervalMs: 500,
    resendDelaysMs: [1_000, 120_000],
    callbackTimeoutMs: 3_000,
    callbackConcurrency: 10,
    callbackConcurrencyPerSubscription: 2,
    accessTokenTtlMs: 300_000,
    refreshTokenTtlMs: 43_200_000,
    codeTtlMs: 30_000,
    signingAlg: "EdDSA",
    profile: "2.1",
    authorizationServer: false,
    clientMetadata: ["app.example", "vscode.dev"],
    corsOrigins: ["https://a.example", "http://localhost:3000"],
    rateLimit: { count: 100, windowMs: 60_000 },
    maxBodyBytes: 2_097_152,
    maxPayloadBytes: 65_536,
    retentionMs: 7 * 86_400_000,
    disableAfterMs: 0,
    metricsToken: METRICS_TOKEN,
    logLevel: "debug",
    adminPassword: ADMIN_PASSWORD,
  });
});

test("parseConfig() refuses bad values of each variable and says what would be right", () => {
  const cases: [name: string, values: string[], right: RegExp][] = [
    ["HOST", ["[::1]", "http://x", "a b", "a..b", "999.1.1.1", "h:80", "-x", "fe80::1%lo"], /::1/],
    ["PORT", ["80a", "-1", "65536", "8080.0", "+80", " 80", "080", "1e3", "0x50"], /0 to 65535/],
    ["DATABASE", [":memory:", "file:x.db?mode=memory", "data/"], /path of a file/],
    // As in a file of variables with Windows line ends.
    ["DATABASE", ["data/gatepost.db\r", " ", " gatepost.db", "a\nb.db"], /path of a file/],
    ["ENDPOINTS", ["endpoints\r", " ", "endpoints ", "a\tb"], /path of a folder/],
    ["DATABASE", ["http://h:4001", "rqlit://h:4001", "rqlite:/h:4001", "h:4001", "a:1,b:1"],
      /rqlite:\/\/HOST:PORT/],
    ["DATABASE", ["rqlite://", "rqlite://h", "rqlite://h:0", "rqlite://h:1,", "rqlite://h:1/",
      "rqlite://h:1/x", "rqlite://h:1?level=none", "rqlites://h:70000"], /is not HOST:PORT/],
    ["DATABASE", ["rqlite://a:1,b:1,A:1"], /has the node a:1 twice/],
    ["DATABASE_CREDENTIALS", ["gatepost", ":x", "gatepost:", "a:b\nc"], /user:password/],
    ["NAME", [" x", "x ", "a\nb", "a\u202eb", "x".repeat(65)], /1 to 64 characters/],
    ["CRON", ["yes", "true", "ON", "0", "off "], /on, off/],
    ["SHARE_PORT", ["yes", "1"], /on, off/],
    ["AUTHORIZATION_SERVER", ["no", "OFF"], /on, off/],
    ["DISTRIBUTE_INTERVAL", ["0", "1", "9ms", "61m", "1 s", "-1s"], /10ms to 1h/],
    ["RESEND_DELAYS", ["1s,2s,3s,4s", "1s,,2s", "1s,", "10", "31d", "none,1s"], /10s|3 at most/],
    ["CALLBACK_TIMEOUT", ["0s", "11m", "ten"], /10ms to 10m/],
    ["CALLBACK_CONCURRENCY", ["0", "1001", "many"], /1 to 1000/],
    ["CALLBACK_CONCURRENCY_PER_SUBSCRIPTION", ["0", "1001", "1.5"], /1 to 1000/],
    ["CALLBACK_ALLOW", ["localhost", "10.0.0.0/33", "10.1.2.3/8", "10.0.0.0/8,x"], /CIDR/],
    ["ACCESS_TOKEN_TTL", ["0s", "500ms", "1500ms", "31d"], /whole seconds from 1s to 30d/],
    ["REFRESH_TOKEN_TTL", ["0s", "3651d", "forever"], /1s to 3650d/],
    ["CONSOLE", ["no", "9090", "0.0.0.0:1", "a b:1", "x:65536", "[::]:1"], /HOST:PORT of one addr/],
    ["CODE_TTL", ["0s", "11m"], /1s to 10m/],
    ["SIGNING_ALG", ["HS256", "none", "es256", "PS256"], /ES256, RS256, EdDSA/],
    ["PROFILE", ["2.0", "21", "on", "oauth2.1"], /none, 2\.1/],
    ["CLIENT_METADATA", ["https://app.example", "app.example/x", "*"], /host name/],
    ["CLIENT_METADATA", ["ON", "on ", "off\r", "on,app.example", "none"], /off, on, or hosts/],
    ["TRUSTED_PROXIES", ["*", "proxy.example"], /CIDR/],
    [
      "CORS_ORIGINS",
      ["*", "null", "a.example", "https://a.example/", "https://A.example", "https://a.example:443",
        "ftp://a.example", "https://a.example/x", "https://a.example,*"],
      /https:\/\/app\.example\.com/,
    ],
    ["RATE_LIMIT", ["100", "0/1m", "100/500ms", "100/2d", "1000001/1s", "a lot"], /100\/1m/],
    ["MAX_BODY", ["0", "1023", "257MiB", "1MB", "-1"], /1KiB to 256MiB/],
    ["MAX_PAYLOAD", ["0", "65MiB", "x"], /1KiB to 64MiB/],
    ["RETENTION", ["0", "never", "3651d"], /1s to 3650d/],
    ["DISABLE_AFTER", ["never", "-1d", "3651d"], /0s to 3650d/],
    ["LOG_LEVEL", ["trace", "INFO", "warning"], /debug, info, warn, error/],
  ];
  for (const [name, values, right] of cases) {
    for (const value of values) assert.match(errorOf(name, value), right);
  }
});

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

test("parseConfig() reports every error at once, a line each", () => {
  const errors = errorsOf({
    GATEPOST_PORT: "http",
    GATEPOST_CRON: "maybe",
    GATEPOST_HOST: "0.0.0.0",
    GATEPOST_SECRET_KEY: "short",
    GATEPOST_LOGLEVEL: "debug",
  });
  const names = errors.map((error) => error.split(":")[0]);
  assert.deepEqual(names.sort(), [
    "GATEPOST_BASE_URL",
    "GATEPOST_CRON",
    "GATEPOST_LOGLEVEL",
    "GATEPOST_PORT",
    "GATEPOST_SECRET_KEY",
  ]);
});

test("parseConfig() never repeats a secret in an error", () => {
  const cases: [name: string, value: string][] = [
    ["SECRET_KEY", "hunter2-hunter2"],
    ["SECRET_KEY", `${SECRET_KEY}hunter2`],
    ["METRICS_TOKEN", "hunter2"],
    ["METRICS_TOKEN", 'hunter2 hunter2 hunter2 "'],
    ["ADMIN_PASSWORD", "hunter2"],
    ["ADMIN_PASSWORD", "hunter2".repeat(200)],
    ["DATABASE_CREDENTIALS", "hunter2"],
    ["DATABASE", "rqlite://admin:hunter2@127.0.0.1:4001"],
    ["DATABASE", "admin:hunter2@127.0.0.1:4001"],
    ["BASE_URL", "https://admin:hunter2@api.example.com"],
    ["BASE_URL", "https://admin:p@hunter2@api.example.com/x?"],
    ["BASE_URL", "https:admin:hunter2@api.example.com"],
    ["CORS_ORIGINS", "https://admin:hunter2@a.example"],
    ["DATABASE", "postgres://db.example/gatepost?password=hunter2"],
    ["DATABASE", "rqlite://127.0.0.1:4001/?pass=hunter2"],
    ["DATABASE", "rqlite://admin:hunter2?x#hunter2@127.0.0.1:4001"],
    ["BASE_URL", "https://api.example.com/?mail=a@b.example&token=hunter2"],
    ["CORS_ORIGINS", "https://a.example,https://b.example/#hunter2"],
    ["ADMIN_PASSWROD", "hunter2"],
    // The secret itself in place of a path.
    ["DATABASE_CREDENTIALS_FILE", "admin:hunter2"],
    ["SECRET_KEY_FILE", `hunter2/${SECRET_KEY}`],
    ["SECRET_KEY_FILE", `/hunter2/${SECRET_KEY}`], // as base64 may begin and end
    ["SECRET_KEY_FILE", `/hunter2/${SECRET_KEY}\n`],
    ["ADMIN_PASSWORD_FILE", "hunter2".repeat(200)],
  ];
  for (const [name, value] of cases) assert.doesNotMatch(errorOf(name, value), /hunter2/);
});

test("parseConfig() refuses a GATEPOST_SECRET_KEY that is not 32 bytes in base64", () => {
  const cases = [
    "a2V5",
    Buffer.alloc(31, 7).toString("base64"),
    Buffer.alloc(33, 7).toString("base64"),
    Buffer.alloc(32, 7).toString("hex"),
    Buffer.alloc(32, 0xff).toString("base64url"),
    SECRET_KEY.slice(0, -1),
    `${SECRET_KEY.slice(0, -2)}d=`,
    `!${SECRET_KEY}`,
  ];
  for (const value of cases) assert.match(errorOf("SECRET_KEY", value), /32 bytes in base64/);
});

test("parseConfig() accepts a GATEPOST_ADMIN_PASSWORD of 8 to 1024 bytes", () => {
  for (const password of ["x".repeat(8), "ü".repeat(4), "x".repeat(1_024), "ü".repeat(512)]) {
    assert.equal(configOf({ GATEPOST_ADMIN_PASSWORD: password }).adminPassword, password);
  }
  for (const password of ["x".repeat(7), "x".repeat(1_025), "ü".repeat(513)]) {
    assert.match(errorOf("ADMIN_PASSWORD", password), /8 to 1024 bytes/);
  }
});

test("parseConfig() accepts only a GATEPOST_METRICS_TOKEN that fits a Bearer header", () => {
  for (const token of ["x".repeat(16), "Az09-._~+/Az09-._~==", "x".repeat(1_024)]) {
    assert.equal(configOf({ GATEPOST_METRICS_TOKEN: token }).metricsToken, token);
  }
  for (const token of ["x".repeat(15), "x".repeat(1_025), "x y".repeat(9), "==".repeat(9)]) {
    assert.match(errorOf("METRICS_TOKEN", token), /16 to 1024/);
  }
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

test("parseConfig() reads `none` as an empty list", () => {
  const config = configOf({
    GATEPOST_RESEND_DELAYS: "none",
    GATEPOST_CALLBACK_ALLOW: "none",
    GATEPOST_CORS_ORIGINS: "none",
  });
  assert.deepEqual(config.resendDelaysMs, []);
  assert.deepEqual(config.callbackAllow, []);
  assert.deepEqual(config.corsOrigins, []);
});

test("parseConfig() names the wrong entry of a list", () => {
  const error = errorOf("CALLBACK_ALLOW", "10.0.0.0/8, 10.0.0.300/8");
  assert.match(error, /has the entry "10\.0\.0\.300\/8"/);
});

test("parseConfig() reports each unknown GATEPOST_ variable", () => {
  const names = ["GATEPOST_LOGLEVEL", "GATEPOST_BASEURL", "GATEPOST_port"];
  const lines = names.map((name) => `${name}: no such variable`);
  assert.deepEqual(errorsOf(Object.fromEntries(names.map((name) => [name, "x"]))), lines);
});

test("parseConfig() ignores GATEPOST_REVISION and other programs' variables", () => {
  configOf({ GATEPOST_REVISION: "abc1234", PATH: "/bin", GATE: "x", GATEPOSTS: "x", PORT: "http" });
});

test("parseConfig() ignores unknown names without a value, and shows strange ones safely", () => {
  configOf({ GATEPOST_OLD: "", GATEPOST_OLDER: undefined });
  const [error = ""] = errorsOf({ [`GATEPOST_\n\u001b[31m${"x".repeat(500)}`]: "x" });
  assert.match(error, /^[\x20-\x7e…]{1,200}$/);
  assert.equal(errorsOf({ GATEPOST___proto__: "x", GATEPOST_CONSTRUCTOR: "x" }).length, 2);
});

test("describeConfig() lists every variable once, with its effective value and no secret", () => {
  const listed = describeConfig(
    configOf({
      GATEPOST_PORT: "9090",
      GATEPOST_RESEND_DELAYS: "90s,2h",
      GATEPOST_CALLBACK_ALLOW: "10.0.0.0/8",
      GATEPOST_SECRET_KEY: SECRET_KEY,
      GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
      GATEPOST_ADMIN_PASSWORD: ADMIN_PASSWORD,
    }),
  );
  assert.deepEqual(listed.map(({ name }) => name), VARIABLES.map(({ name }) => name));
  const values = new Map(listed.map(({ name, value }) => [name, value]));
  assert.equal(values.get("GATEPOST_PORT"), "9090");
  assert.equal(values.get("GATEPOST_RESEND_DELAYS"), "90s,2h");
  assert.equal(values.get("GATEPOST_CALLBACK_ALLOW"), "10.0.0.0/8");
  assert.equal(values.get("GATEPOST_MAX_BODY"), "1MiB");
  assert.equal(values.get("GATEPOST_SECRET_KEY"), "set");
  assert.equal(values.get("GATEPOST_METRICS_TOKEN"), "set");
  assert.equal(values.get("GATEPOST_ADMIN_PASSWORD"), "set");
  for (const secret of [SECRET_KEY, METRICS_TOKEN, ADMIN_PASSWORD]) {
    assert.ok(!JSON.stringify(listed).includes(secret));
  }
});

test("describeConfig() shows the defaults in VARIABLES", () => {
  const listed = describeConfig(configOf({}));
  assert.deepEqual(
    listed.map(({ name, value }) => [name, value]),
    VARIABLES.map((each) => [each.name, each.default]),
  );
  assert.deepEqual(
    Object.fromEntries(VARIABLES.map((each) => [each.name.replace("GATEPOST_", ""), each.default])),
    {
      HOST: "127.0.0.1",
      PORT: "8080",
      SHARE_PORT: "off",
      BASE_URL: "http://HOST:PORT as listened on",
      DATABASE: "./data/gatepost.db",
      DATABASE_CREDENTIALS: "none",
      NAME: "host of GATEPOST_BASE_URL",
      ENDPOINTS: "none",
      CRON: "on",
      DISTRIBUTE_INTERVAL: "1s",
      RESEND_DELAYS: "10s,5m,1h",
      CALLBACK_TIMEOUT: "10s",
      CALLBACK_CONCURRENCY: "64",
      CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "8",
      AUTHORIZATION_SERVER: "on",
      CALLBACK_ALLOW: "none",
      ACCESS_TOKEN_TTL: "1h",
      REFRESH_TOKEN_TTL: "30d",
      CODE_TTL: "1m",
      CONSOLE: "on",
      SIGNING_ALG: "ES256",
      PROFILE: "none",
      CLIENT_METADATA: "off",
      SECRET_KEY: "none",
      TRUSTED_PROXIES: "none",
      CORS_ORIGINS: "none",
      RATE_LIMIT: "none",
      MAX_BODY: "1MiB",
      MAX_PAYLOAD: "256KiB",
      RETENTION: "30d",
      DISABLE_AFTER: "5d",
      METRICS_TOKEN: "none",
      LOG_LEVEL: "info",
      ADMIN_PASSWORD: "none",
    },
  );
});

test("describeConfig() writes values that parseConfig() reads back unchanged", () => {
  const first = configOf({
    GATEPOST_CRON: "off",
    GATEPOST_CALLBACK_ALLOW: "10.0.0.0/8,fd00::/8",
    GATEPOST_RESEND_DELAYS: "1500ms,10m",
    GATEPOST_MAX_BODY: "1500B",
    GATEPOST_CORS_ORIGINS: "https://a.example,http://[::1]:3000",
    GATEPOST_BASE_URL: "https://api.example.com/gate",
  });
  const absent = ["GATEPOST_DATABASE_CREDENTIALS", "GATEPOST_NAME", "GATEPOST_ENDPOINTS",
    "GATEPOST_SECRET_KEY", "GATEPOST_METRICS_TOKEN", "GATEPOST_ADMIN_PASSWORD"];
  const listed = describeConfig(first).filter(({ name }) => !absent.includes(name));
  const second = configOf(Object.fromEntries(listed.map(({ name, value }) => [name, value])));
  assert.deepEqual(second, first);
});

const OTHER_KEY = Buffer.alloc(32, 7).toString("base64");

test("GATEPOST_SECRET_KEY may list several keys, whose order is kept", () => {
  const { secretKeys } = configOf({ GATEPOST_SECRET_KEY: `${SECRET_KEY}, ${OTHER_KEY}` });
  assert.deepEqual(secretKeys?.map((key) => Buffer.from(key).toString("base64")), [
    SECRET_KEY,
    OTHER_KEY,
  ]);
  for (const value of [`${SECRET_KEY},`, `${SECRET_KEY},hunter2`]) {
    assert.doesNotMatch(errorOf("SECRET_KEY", value), /hunter2/);
  }
});

test("each secret may come from a file, whose last line break is ignored", () => {
  const files: Record<string, string> = {
    "/run/key": `${SECRET_KEY}\n`,
    "/run/token": `${METRICS_TOKEN}\r\n`,
    "/run/password": ADMIN_PASSWORD,
  };
  const result = parseConfig({
    GATEPOST_SECRET_KEY_FILE: "/run/key",
    GATEPOST_METRICS_TOKEN_FILE: "/run/token",
    GATEPOST_ADMIN_PASSWORD_FILE: "/run/password",
  }, (path) => files[path] ?? "");
  assert.ok(result.ok);
  const { secretKeys, metricsToken, adminPassword } = result.config;
  assert.equal(Buffer.from(secretKeys?.[0] ?? []).toString("base64"), SECRET_KEY);
  assert.deepEqual([metricsToken, adminPassword], [METRICS_TOKEN, ADMIN_PASSWORD]);
});

test("a line break at the end of a secret's variable is ignored", () => {
  const { adminPassword } = configOf({ GATEPOST_ADMIN_PASSWORD: `${ADMIN_PASSWORD}\n` });
  assert.equal(adminPassword, ADMIN_PASSWORD);
});

test("the file of a secret must be UTF-8, with or without a byte order mark", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "password");
  const env = { GATEPOST_ADMIN_PASSWORD_FILE: file };
  writeFileSync(file, `\ufeff${ADMIN_PASSWORD}\n`);
  assert.equal(configOf(env).adminPassword, ADMIN_PASSWORD);
  writeFileSync(file, Buffer.from("pässwörter", "latin1"));
  const [error = ""] = errorsOf(env);
  assert.match(error, /^GATEPOST_ADMIN_PASSWORD_FILE: cannot be read: .*password is not UTF-8$/);
});

test("an unreadable file of a secret is an error, and so are variable and file at once", () => {
  const [missing = "", ...more] = errorsOf({ GATEPOST_METRICS_TOKEN_FILE: "/none/here" });
  assert.match(missing, /^GATEPOST_METRICS_TOKEN_FILE: cannot be read: ENOENT.*\/none\/here/);
  assert.deepEqual(more, []);
  // Reading it would never end.
  assert.deepEqual(errorsOf({ GATEPOST_METRICS_TOKEN_FILE: "/dev/zero" }), [
    "GATEPOST_METRICS_TOKEN_FILE: cannot be read: /dev/zero is a device",
  ]);
  const result = parseConfig(
    { GATEPOST_METRICS_TOKEN: METRICS_TOKEN, GATEPOST_METRICS_TOKEN_FILE: "/run/token" },
    () => METRICS_TOKEN,
  );
  assert.ok(!result.ok);
  assert.match(result.errors.join("\n"), /^GATEPOST_METRICS_TOKEN: GATEPOST_METRICS_TOKEN_FILE is/);
});

test("an empty file of a secret is an error", () => {
  for (const nothing of ["", "\n", "\r\n"]) {
    const result = parseConfig({ GATEPOST_SECRET_KEY_FILE: "/run/key" }, () => nothing);
    assert.ok(!result.ok);
    assert.deepEqual(result.errors, ["GATEPOST_SECRET_KEY_FILE: /run/key is empty"]);
  }
});

test("an error in a secret's file names the variable of the file, and not the content", () => {
  const result = parseConfig({ GATEPOST_SECRET_KEY_FILE: "/run/key" }, () => "hunter2");
  assert.ok(!result.ok);
  assert.match(result.errors.join("\n"), /^GATEPOST_SECRET_KEY_FILE: its value is not 32 bytes/);
  assert.doesNotMatch(result.errors.join("\n"), /hunter2/);
});

test("only secrets are read from files", () => {
  assert.match(errorOf("PORT_FILE", "/run/port"), /no such variable/);
});

test("parseConfig() refuses text that was not UTF-8", () => {
  // Node replaces such bytes by U+FFFD, which makes another name, path or password.
  for (const name of ["NAME", "DATABASE", "ADMIN_PASSWORD"]) {
    assert.match(errorOf(name, "caf\ufffd au lait"), /is not UTF-8$/);
  }
});

test("the variables that Kubernetes and Docker set for services named gatepost are ignored", () => {
  const config = configOf({
    GATEPOST_CONSOLE_SERVICE_HOST: "10.0.0.8",
    GATEPOST_CONSOLE_SERVICE_PORT_HTTP: "80",
    GATEPOST_CONSOLE_PORT: "tcp://10.0.0.8:80",
    GATEPOST_CONSOLE_PORT_80_TCP_ADDR: "10.0.0.8",
    GATEPOST_SERVICE_HOST: "10.0.0.7",
    GATEPOST_SERVICE_PORT: "8080",
    GATEPOST_SERVICE_PORT_HTTP: "8080",
    GATEPOST_PORT_8080_TCP: "tcp://10.0.0.7:8080",
    GATEPOST_PORT_8080_TCP_PROTO: "tcp",
    GATEPOST_PORT_8080_TCP_PORT: "8080",
    GATEPOST_PORT_8080_TCP_ADDR: "10.0.0.7",
  });
  assert.deepEqual(config, configOf({}));
  const error = errorOf("PORT", "tcp://10.0.0.7:8080");
  assert.match(error, /0 to 65535; Kubernetes .* service .* named gatepost.*enableServiceLinks/);
  assert.match(errorOf("SERVICE_HOSTS", "x"), /no such variable/);
  assert.match(errorOf("HTTP_PORT", "http://10.0.0.7:8080"), /no such variable/);
});

test("a variable of Gatepost after a byte order mark, a word or a space is an error", () => {
  // `node --env-file` and `env $(xargs < FILE)` leave these in the name of a file's first variable.
  for (const before of ["\ufeff", "export ", " "]) {
    const [error = "", ...others] = errorsOf({ [`${before}GATEPOST_DATABASE`]: "/srv/post.db" });
    assert.match(error, /^"[\x20-\x7e]*GATEPOST_DATABASE": no such variable$/);
    assert.deepEqual(others, []);
  }
  configOf({ MY_GATEPOST_DATABASE: "x", "BASH_FUNC_GATEPOST_CHECK%%": "() { true; }" });
});
