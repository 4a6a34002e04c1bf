import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Gatepost, type GatepostOptions, startGatepost } from "../helpers/gatepost.ts";
import { asFields } from "../helpers/openapi_rules.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const METRICS_TOKEN = "metrics-token-of-the-ready-test";

async function start(t: TestContext, env: GatepostOptions["env"] = {}): Promise<Gatepost> {
  const gatepost = await startGatepost({ env: { GATEPOST_METRICS_TOKEN: METRICS_TOKEN, ...env } });
  t.after(() => gatepost.stop());
  return gatepost;
}

async function readParts(gatepost: Gatepost): Promise<Readonly<Record<string, unknown>>> {
  const response = await gatepost.api.get("/system/ready", bearer(METRICS_TOKEN));
  return asFields(readObject(response)["parts"]);
}

async function waitReady(gatepost: Gatepost, status = 200): Promise<void> {
  await until(async () => (await gatepost.api.get("/system/ready")).status === status);
}

test("health and about need no token", async (t) => {
  const gatepost = await start(t);
  const health = await gatepost.api.get("/system/health");
  assert.deepEqual([health.status, readObject(health)], [200, { status: "ok" }]);
  const about = readObject(await gatepost.api.get("/system/about"));
  assert.deepEqual(Object.keys(about), ["name", "version", "revision"]);
  assert.equal(about["name"], "Gatepost");
  assert.match(String(about["version"]), /^\d+\.\d+\.\d+/);
});

test("the parts of readiness are shown to the metrics token and scope backend alone", async (t) => {
  const gatepost = await start(t);
  await waitReady(gatepost);
  const consumer = await gatepost.login(await gatepost.createUser());
  for (const headers of [undefined, bearer(consumer), bearer("wrong")]) {
    const response = await gatepost.api.get("/system/ready", headers);
    assert.deepEqual([response.status, readObject(response)], [200, { status: "ready" }]);
  }
  for (const token of [METRICS_TOKEN, gatepost.adminToken]) {
    const response = await gatepost.api.get("/system/ready", bearer(token));
    assert.deepEqual(readObject(response), {
      status: "ready",
      parts: {
        database: "ok",
        distributor: "on",
        callbacks: "ok",
        backlog: 0,
        oldest_pending_age_seconds: 0,
      },
    });
    assert.equal(response.headers.get("cache-control"), "no-store");
  }
});

test("the server is ready right after it has logged `listening`", async (t) => {
  const gatepost = await start(t);
  assert.equal((await gatepost.api.get("/system/ready")).status, 200);
  assert.equal((await readParts(gatepost))["distributor"], "on");
});

test("with cron off the distributor is off, and dispatched events are the backlog", async (t) => {
  const gatepost = await start(t, { GATEPOST_CRON: "off" });
  assert.equal((await gatepost.api.get("/system/ready")).status, 200);
  assert.deepEqual(await readParts(gatepost), {
    database: "ok",
    distributor: "off",
    callbacks: "ok",
    backlog: 0,
    oldest_pending_age_seconds: 0,
  });
  const admin = bearer(gatepost.adminToken);
  await gatepost.api.postJson("/backend/event", { name: newName("event"), data: 1 }, admin);
  await delay(100);
  await gatepost.api.postJson("/backend/event", { name: newName("event"), data: 2 }, admin);
  const { backlog, oldest_pending_age_seconds: age } = await readParts(gatepost);
  assert.equal(backlog, 2);
  assert.ok(Number(age) >= 0.1 && Number(age) < 10, String(age));
});

test("waiting deliveries are backlog; those of a paused subscription have no age", async (t) => {
  const gatepost = await start(t, { GATEPOST_CALLBACK_ALLOW: "127.0.0.1" });
  const headers = bearer(await gatepost.login(await gatepost.createUser()));
  const event = newName("event");
  const body = { event, endpoint: "http://127.0.0.1:9/" };
  const made = readObject(await gatepost.api.postJson("/consumer/subscription", body, headers));
  const path = `/consumer/subscription/${String(made["id"])}`;
  const patch = (status: string) =>
    gatepost.api.send("PATCH", path, {
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ status }),
    });
  await patch("paused");
  const admin = bearer(gatepost.adminToken);
  await gatepost.api.postJson("/backend/event", { name: event, data: 1 }, admin);
  const isFannedOut = async () => {
    const response = await gatepost.api.get(
      `/backend/event?name=${event}&status=distributed`,
      admin,
    );
    return response.text.includes(event);
  };
  for (let waitedMs = 0; !await isFannedOut(); waitedMs += 20) {
    assert.ok(waitedMs < 5000, "it took too long");
    await delay(20);
  }
  const paused = await readParts(gatepost);
  assert.deepEqual([paused["backlog"], paused["oldest_pending_age_seconds"]], [1, 0]);
  await patch("active");
  const active = await readParts(gatepost);
  assert.equal(active["backlog"], 1);
  // Its first attempt may have failed meanwhile: then it waits for the resend, and nothing is late.
  assert.ok(Number(active["oldest_pending_age_seconds"]) >= 0);
});

function dispatch(gatepost: Gatepost) {
  const event = { name: newName("event"), data: 1 };
  return gatepost.api.postJson("/backend/event", event, bearer(gatepost.adminToken));
}

test("after two seconds of refused writes the server is not ready until they work", async (t) => {
  const gatepost = await start(t);
  await waitReady(gatepost);
  const locker = new DatabaseSync(join(gatepost.server.folder, "gatepost.db"));
  t.after(() => locker.isOpen && locker.close());
  locker.exec("BEGIN IMMEDIATE");
  const startedMs = performance.now();
  assert.equal((await dispatch(gatepost)).status, 503);
  assert.equal((await gatepost.api.get("/system/ready")).status, 200);
  await waitReady(gatepost, 503);
  assert.ok(performance.now() - startedMs > 2_000);
  assert.equal((await readParts(gatepost))["database"], "locked");
  const logged = () => gatepost.server.lines.filter((line) => line.includes("writes are"));
  await until(() => logged().length === 1);
  locker.exec("ROLLBACK");
  await waitReady(gatepost);
  assert.equal((await readParts(gatepost))["database"], "ok");
  assert.equal((await dispatch(gatepost)).status, 202);
  await until(() => logged().length === 2);
});

test("with its database file removed the server refuses writes and is not ready", async (t) => {
  const gatepost = await start(t);
  await waitReady(gatepost);
  rmSync(join(gatepost.server.folder, "gatepost.db"));
  assert.equal((await gatepost.api.get("/system/ready")).status, 503, "before anybody writes");
  const response = await dispatch(gatepost);
  assert.equal(response.status, 503);
  assert.ok(Number(response.headers.get("retry-after")) > 0);
  assert.equal((await gatepost.api.get("/system/ready")).status, 503);
  assert.equal((await readParts(gatepost))["database"], "replaced");
  const grants = await gatepost.api.get("/consumer/grant", bearer(gatepost.adminToken));
  assert.equal(grants.status, 200);
});
