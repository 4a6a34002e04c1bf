import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEventStage } from "../helpers/event_stage.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readItems, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));

const CRONJOBS = `
  let runs = 0;
  export const tick = {
    name: "tick",
    every: "1s",
    run({ dispatch }) {
      dispatch("ticked", { run: ++runs });
    },
  };
  export const broken = {
    name: "broken",
    every: "1s",
    run({ dispatch }) {
      dispatch("broke", {});
      throw new Error("it broke");
    },
  };`;

/** A folder for a database that outlives one server. */
async function newDatabase(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-cron-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "gatepost.db");
}

async function countPending({ api, adminToken }: Gatepost, name: string): Promise<number> {
  const path = `/backend/event?status=pending&name=${name}`;
  return readItems(await api.get(path, bearer(adminToken))).length;
}

test("with GATEPOST_CRON=off events stay pending, and a start with on delivers them", async (t) => {
  const env = {
    GATEPOST_DATABASE: await newDatabase(t),
    GATEPOST_ENDPOINTS: ENDPOINTS,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
  };
  const off = await startEventStage({ ...env, GATEPOST_CRON: "off" });
  t.after(() => off.receiver.close());
  const subscription = await off.subscribe(await off.newConsumer(), newName("e"));
  const response = await off.gatepost.api.postJson("/dispatch", {
    events: [1, 2, 3].map((n) => ({ name: subscription.event, data: { n } })),
  });
  assert.equal(response.status, 202);
  await off.dispatch(subscription.event, { n: 4 });
  const later = await off.subscribe(await off.newConsumer(), subscription.event);
  await sleep(1_500);
  assert.equal(await countPending(off.gatepost, subscription.event), 4);
  assert.equal(off.receiver.count(), 0);
  await off.gatepost.stop();

  const on = await startGatepost({ env: { ...env, GATEPOST_CRON: "on" } });
  t.after(() => on.server.kill());
  const requests = await off.receiver.waitFor(4, 5_000, subscription.path);
  assert.deepEqual(
    requests.map(({ body }) => JSON.parse(String(body)).n).sort(),
    [1, 2, 3, 4],
  );
  await until(async () => await countPending(on, subscription.event) === 0);
  await sleep(300);
  assert.equal(off.receiver.count(later.path), 0, "it was made after they were dispatched");
  await on.stop();
});

test("the readiness report says whether the distributor is on", async (t) => {
  for (const [cron, expected] of [["on", "on"], ["off", "off"]] as const) {
    const gatepost = await startGatepost({ env: { GATEPOST_CRON: cron } });
    t.after(() => gatepost.server.kill());
    await until(async () => {
      const response = await gatepost.api.get("/system/ready", bearer(gatepost.adminToken));
      const { parts } = readObject(response);
      return response.status === 200 && Object(parts)["distributor"] === expected;
    });
    await gatepost.stop();
  }
});

test("cronjobs of modules run, and dispatch events only if they succeed", async (t) => {
  const stage = await startEventStage({}, { "cronjobs.mjs": CRONJOBS });
  t.after(() => stage.stop());
  const token = await stage.newConsumer();
  const ticked = await stage.subscribe(token, "ticked");
  const broke = await stage.subscribe(token, "broke");
  await stage.receiver.waitFor(2, 5_000, ticked.path);
  const jobs = readItems(await stage.call("GET", "/backend/cronjob", stage.admin));
  const broken = jobs.find(({ name }) => name === "broken");
  assert.match(JSON.stringify(broken), /it broke/);
  assert.equal(stage.receiver.count(broke.path), 0);
});
