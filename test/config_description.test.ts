import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig, VARIABLES } from "../src/config.ts";
import { ADMIN_PASSWORD, configOf, METRICS_TOKEN, SECRET_KEY } from "./helpers/config.ts";

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
