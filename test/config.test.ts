import assert from "node:assert/strict";
import { test } from "node:test";
import { VARIABLES } from "../src/config.ts";
import {
  ADMIN_PASSWORD,
  configOf,
  errorOf,
  errorsOf,
  METRICS_TOKEN,
  SECRET_KEY,
} from "./helpers/config.ts";

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
