import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createServiceMetrics, watchEventLoop } from "../../src/app/metrics.ts";
import type { OpenDatabase } from "../../src/database/engine.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { type MetricFamily, parseMetrics } from "../helpers/metrics_text.ts";
import { exchangeRaw } from "../helpers/raw_http.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const METRICS_TOKEN = "metrics-token-of-the-metrics-test";
const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

let gatepost: Gatepost;
let receiver: Receiver;

before(async () => {
  receiver = await startReceiver();
  gatepost = await startGatepost({
    env: {
      GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
      GATEPOST_RESEND_DELAYS: "1h",
    },
  });
});
after(async () => {
  await gatepost.stop();
  await receiver.close();
});

async function scrapeText(): Promise<string> {
  const response = await gatepost.api.get("/system/metrics", bearer(METRICS_TOKEN));
  assert.equal(response.status, 200);
  return response.text;
}

async function scrape(): Promise<MetricFamily[]> {
  return parseMetrics(await scrapeText());
}

/** The sum of a metric's values whose labels are these; other labels may be anything. */
function sum(families: readonly MetricFamily[], name: string, labels: Record<string, string> = {}) {
  return families.flatMap(({ samples }) => samples)
    .filter((sample) => sample.name === name)
    .filter((sample) =>
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
    )
    .reduce((total, { value }) => total + value, 0);
}

test("the metrics are for the metrics token and scope backend alone", async () => {
  const consumer = await gatepost.login(await gatepost.createUser());
  const cases: readonly [headers: Record<string, string>, status: number][] = [
    [{}, 401],
    [bearer("wrong"), 401],
    [bearer(`${METRICS_TOKEN}x`), 401],
    [{ authorization: `Basic ${METRICS_TOKEN}` }, 401],
    [bearer(consumer), 403],
    [bearer(gatepost.adminToken), 200],
    [bearer(METRICS_TOKEN), 200],
  ];
  for (const [headers, status] of cases) {
    const response = await gatepost.api.get("/system/metrics", headers);
    assert.equal(response.status, status, JSON.stringify(headers));
    if (status === 200) continue;
    assert.match(response.headers.get("www-authenticate") ?? "", /^Bearer /);
    assert.match(response.headers.get("content-type") ?? "", /problem\+json/);
  }
  const inQuery = await gatepost.api.get(`/system/metrics?access_token=${METRICS_TOKEN}`);
  assert.equal(inQuery.status, 401);
});

test("the metrics are in Prometheus' text format, and are not cached", async () => {
  const response = await gatepost.api.get("/system/metrics", bearer(METRICS_TOKEN));
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "no-store");
  const families = parseMetrics(response.text);
  for (const { name, type, help } of families) {
    assert.match(help, /^\S.*\.$/, `${name} has a sentence`);
    // https://prometheus.io/docs/practices/naming/
    if (type === "counter") assert.match(name, /_total$/);
    else assert.doesNotMatch(name, /_total$/);
    assert.match(name, /^(gatepost|process|nodejs)_[a-z0-9_]+$/);
    assert.doesNotMatch(name, /_(ms|milliseconds|minutes|kb|percent)$/);
  }
});

test("well-known metrics have their usual names", async () => {
  const names = (await scrape()).map(({ name }) => name);
  for (
    const name of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "process_start_time_seconds",
      "process_open_fds",
      "nodejs_eventloop_lag_p99_seconds",
      "nodejs_heap_size_used_bytes",
      "nodejs_version_info",
      "gatepost_build_info",
    ]
  ) {
    assert.ok(names.includes(name), name);
  }
});

test("values of the process are in the units that their names say", async () => {
  const families = await scrape();
  const now = Date.now() / 1000;
  const startedAt = sum(families, "process_start_time_seconds");
  assert.ok(startedAt > now - 300 && startedAt < now);
  const cpuSeconds = sum(families, "process_cpu_seconds_total");
  assert.ok(cpuSeconds > 0.05 && cpuSeconds < 100);
  assert.ok(sum(families, "process_resident_memory_bytes") > 20e6);
  assert.ok(sum(families, "process_open_fds") > 5);
  const lag = sum(families, "nodejs_eventloop_lag_p99_seconds");
  assert.ok(lag >= 0 && lag < 5);
});

test("requests are counted by method, route pattern and status", async () => {
  const labels = { method: "GET", route: "/consumer/subscription/:id", status: "401" };
  const name = "gatepost_http_requests_total";
  const start = sum(await scrape(), name, labels);
  for (const id of ["s1", "s2", "s3"]) await gatepost.api.get(`/consumer/subscription/${id}`);
  const families = await scrape();
  assert.equal(sum(families, name, labels) - start, 3);
  const { method, route } = labels;
  const histogram = "gatepost_http_request_duration_seconds";
  assert.ok(sum(families, `${histogram}_count`, { method, route }) >= 3);
  assert.ok(sum(families, `${histogram}_sum`, { method, route }) > 0);
  assert.ok(sum(families, `${histogram}_sum`, { method, route }) < 10, "seconds");
});

test("hosted endpoints are counted by their patterns", async () => {
  const user = await gatepost.createUser({ scopes: ["orders"] });
  const headers = { ...bearer(await gatepost.login(user)), "content-type": "application/json" };
  await gatepost.api.send("POST", "/orders/77", { headers, body: "{}" });
  const labels = { method: "POST", route: "/orders/:id" };
  assert.equal(sum(await scrape(), "gatepost_http_requests_total", labels), 1);
});

test("no path, method or query of a client becomes a label", async () => {
  const start = (await scrape()).find(({ name }) => name === "gatepost_http_requests_total");
  const made = newName("path");
  for (let count = 0; count < 30; count++) await gatepost.api.get(`/${made}-${count}?q=${made}`);
  await gatepost.api.get(`/orders/${made}`);
  for (const method of ["PROPFIND", "REPORT", "SEARCH"]) await gatepost.api.send(method, "/");
  const families = await scrape();
  const requests = families.find(({ name }) => name === "gatepost_http_requests_total");
  const grown = (requests?.samples.length ?? 0) - (start?.samples.length ?? 0);
  assert.ok(grown <= 6, `${grown} series`);
  const unknown = { route: "unknown", status: "404" };
  assert.ok(sum(families, "gatepost_http_requests_total", unknown) >= 30);
  assert.equal(sum(families, "gatepost_http_requests_total", { method: "other" }), 3);
  const values = families.flatMap(({ samples }) =>
    samples.flatMap(({ labels }) => Object.values(labels))
  );
  assert.deepEqual(values.filter((value) => value.includes(made)), []);
});

test("logins and tokens are counted by outcome and grant", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const start = await scrape();
  await gatepost.login(user);
  await gatepost.api.postJson("/consumer/login", { ...user, password: "wrong password" });
  await gatepost.token(app, { grant_type: "client_credentials" });
  await gatepost.codeTokens(app, user); // logs in, too
  const end = await scrape();
  const grown = (name: string, labels: Record<string, string>) =>
    sum(end, name, labels) - sum(start, name, labels);
  assert.equal(grown("gatepost_logins_total", { outcome: "ok" }), 2);
  assert.equal(grown("gatepost_logins_total", { outcome: "wrong" }), 1);
  assert.equal(grown("gatepost_tokens_issued_total", { grant: "login" }), 1);
  assert.equal(grown("gatepost_tokens_issued_total", { grant: "client_credentials" }), 1);
  assert.equal(grown("gatepost_tokens_issued_total", { grant: "authorization_code" }), 1);
});

test("the age of the signing key starts again when another key signs", async () => {
  const age = async () => sum(await scrape(), "gatepost_signing_key_age_seconds");
  const before = await age();
  await delay(20);
  assert.ok(before > 0 && await age() > before);
  const later = await age();
  await gatepost.api.postJson("/backend/key", {}, bearer(gatepost.adminToken));
  assert.ok(await age() > later, "a key that does not sign yet does not count");
  const sinceMs = performance.now();
  await gatepost.api.postJson("/backend/key", { at_once: true }, bearer(gatepost.adminToken));
  const fresh = await age();
  assert.ok(fresh <= (performance.now() - sinceMs) / 1000, `${fresh} s`);
});

test("refusals of input that is not a request are counted", async () => {
  const start = sum(await scrape(), "gatepost_http_refusals_total", { status: "400" });
  const port = Number(new URL(gatepost.server.url).port);
  await exchangeRaw(port, "nonsense\r\n\r\n", { waitMs: 2000 });
  assert.equal(sum(await scrape(), "gatepost_http_refusals_total", { status: "400" }) - start, 1);
});

/** The metrics of an idle process that lacks this resource and uses that cluster. */
async function format(want?: string, cluster?: OpenDatabase["cluster"]): Promise<string> {
  const loopDelay = watchEventLoop();
  loopDelay.disable();
  const nothing = { events: 0, deliveries: 0, oldestMs: undefined, overdueSinceMs: undefined };
  return createServiceMetrics().format({
    connections: async () => 0,
    worker: {
      report: () => ({ quietMs: 0, inFlight: 0, want, attempts: [], changed: [] }),
      state: () => "on",
    },
    backlog: async () => nothing,
    cluster,
    keys: { findSigning: () => undefined },
    droppedLogLines: () => 0,
    loopDelay,
    now: () => 0,
  });
}

test("callbacks held up because the process lacks a resource are reported", async () => {
  assert.match(await format("EMFILE"), /^gatepost_callbacks_held_up 1$/m);
  assert.match(await format(undefined), /^gatepost_callbacks_held_up 0$/m);
  assert.match(await scrapeText(), /^gatepost_callbacks_held_up 0$/m);
});

test("nodes and clock difference are reported for a cluster, and not for a file", async () => {
  const nodes = [["10.0.0.1:4001", true], ["10.0.0.2:4001", false]] as const;
  const text = await format(undefined, { nodes: () => [...nodes], skewMs: () => 400 });
  assert.match(text, /^gatepost_database_node_up\{node="10\.0\.0\.1:4001"\} 1$/m);
  assert.match(text, /^gatepost_database_node_up\{node="10\.0\.0\.2:4001"\} 0$/m);
  assert.match(text, /^gatepost_database_clock_difference_seconds 0\.4$/m);
  assert.doesNotMatch(await scrapeText(), /database_(node|clock)/);
});

test("events, attempts and pending deliveries are reported", async () => {
  const token = await gatepost.login(await gatepost.createUser());
  const event = newName("event");
  const subscribe = async (path: string) => {
    receiver.answer(path, path === "/good" ? 204 : 500);
    const body = { event, endpoint: receiver.url + path };
    const response = await gatepost.api.postJson("/consumer/subscription", body, bearer(token));
    assert.equal(response.status, 201, response.text);
    return String(readObject(response)["id"]);
  };
  await subscribe("/good");
  const failing = await subscribe("/bad");
  const start = await scrape();
  const admin = bearer(gatepost.adminToken);
  await gatepost.api.postJson("/backend/event", { name: event, data: 1 }, admin);
  const attempts = "gatepost_delivery_attempts_total";
  await until(async () => sum(await scrape(), attempts) - sum(start, attempts) === 2);
  await until(async () => sum(await scrape(), "gatepost_deliveries_in_flight") === 0);
  // The one that waits for its resend, once the success of the other is recorded.
  const pending = "gatepost_deliveries_pending";
  await until(async () => sum(await scrape(), pending) - sum(start, pending) === 1);
  const end = await scrape();
  const grown = (name: string, labels: Record<string, string> = {}) =>
    sum(end, name, labels) - sum(start, name, labels);
  assert.equal(grown("gatepost_events_dispatched_total"), 1);
  assert.equal(grown(attempts, { outcome: "success" }), 1);
  assert.equal(grown(attempts, { outcome: "failure" }), 1);
  assert.equal(grown("gatepost_delivery_attempt_duration_seconds_count"), 2);
  assert.equal(sum(end, "gatepost_overdue_seconds"), 0);
  const age = sum(end, "gatepost_oldest_pending_age_seconds");
  assert.ok(age > 0 && age < 60, `${age}`);
  assert.equal(sum(end, "gatepost_distributor_state", { state: "on" }), 1);
  assert.ok(sum(end, "gatepost_database_commit_batches_count") > 5);
  assert.ok(sum(end, "gatepost_database_commit_duration_seconds_sum") > 0);
  const path = `/consumer/subscription/${failing}`;
  await gatepost.api.send("DELETE", path, { headers: bearer(token) });
});
