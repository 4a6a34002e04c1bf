import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TAKEOVER_MS } from "../helpers/engine.ts";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { newName } from "../helpers/requests.ts";
import { until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));

// Each server that a test starts listens for the end of this process.
process.setMaxListeners(40);

/** A stage that can be stopped by the test, and the settings for a server that comes after it. */
async function open(t: TestContext, more: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-stop-"));
  const env = {
    GATEPOST_DATABASE: join(folder, "gatepost.db"),
    GATEPOST_ENDPOINTS: ENDPOINTS,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_RESEND_DELAYS: "none",
    ...more,
  };
  const stage = await startEventStage(env);
  t.after(async () => {
    await stage.gatepost.server.kill();
    await stage.receiver.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { stage, env, folder };
}

async function publish(stage: EventStage, name: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ name, data: { n } }));
  const response = await stage.gatepost.api.postJson("/dispatch", { events });
  assert.equal(response.status, 202, response.text);
}

describe("the end of a process", { concurrency: true }, () => {
  test("SIGTERM awaits attempts in flight; the next start sends the rest once", async (t) => {
    const { stage, env, folder } = await open(t);
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    stage.receiver.react(subscription.path, { kind: "answer", delayMs: 300 });
    await publish(stage, subscription.event, 100);
    await stage.receiver.waitFor(12, 5_000);
    const stoppedMs = performance.now();
    assert.equal(await stage.gatepost.server.stop(), 0);
    assert.ok(performance.now() - stoppedMs < 2_000, "no longer than attempts in flight take");
    const sent = stage.receiver.count();
    assert.ok(sent >= 12 && sent <= 24, `${sent}`);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => !name.startsWith("gatepost.db")),
      [],
    );

    stage.receiver.react(subscription.path, { kind: "answer" });
    const next = await startNext(t, env);
    await stage.receiver.waitFor(100, 5_000); // at once, not when a lease ends
    assert.equal(await next.server.stop(), 0);
    const ids = stage.receiver.requests().map(({ headers }) => headers["webhook-id"]);
    assert.deepEqual([ids.length, new Set(ids).size], [100, 100]);
    const attempts = stage.receiver.requests().map(({ headers }) => headers["gatepost-attempt"]);
    assert.deepEqual([...new Set(attempts)], ["1"]);
  });

  test("SIGTERM awaits requests in flight; the next start delivers their events", async (t) => {
    const { stage, env } = await open(t);
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    stage.receiver.react("/held", { kind: "answer", delayMs: 600 });
    const response = stage.gatepost.api.postJson("/dispatch", {
      events: [{ name: subscription.event, data: "late" }],
      call: `${stage.receiver.url}/held`,
    });
    await stage.receiver.waitFor(1, 5_000, "/held");
    const stopped = stage.gatepost.server.stop();
    await until(async () => {
      const probe = fetch(`${stage.gatepost.url}/now`, { signal: AbortSignal.timeout(500) });
      return probe.then(() => false, () => true);
    }, () => "new connections are still accepted");
    assert.equal((await response).status, 202);
    assert.equal(await stopped, 0);
    const next = await startNext(t, env);
    const [request] = await stage.receiver.waitFor(1, 5_000, subscription.path);
    assert.equal(String(request?.body), '"late"');
    await next.stop();
  });

  test("SIGTERM cuts off an attempt after 10 s, which the next start sends again", async (t) => {
    const { stage, env } = await open(t, { GATEPOST_CALLBACK_TIMEOUT: "60s" });
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    stage.receiver.react(subscription.path, { kind: "hang" }, { kind: "answer" });
    await publish(stage, subscription.event, 1);
    await stage.receiver.waitFor(1, 5_000, subscription.path);
    const stoppedMs = performance.now();
    assert.equal(await stage.gatepost.server.stop(), 0);
    const tookMs = performance.now() - stoppedMs;
    assert.ok(tookMs > 9_000 && tookMs < 12_000, `${tookMs} ms`);
    const next = await startNext(t, env);
    const requests = await stage.receiver.waitFor(2, 5_000, subscription.path);
    assert.equal(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, 1);
    assert.deepEqual(requests.map(({ headers }) => headers["gatepost-attempt"]), ["1", "1"]);
    await next.stop();
  });

  test("after SIGKILL the next start sends the deliveries at once", async (t) => {
    const { stage, env, folder } = await open(t, { GATEPOST_CALLBACK_TIMEOUT: "60s" });
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    stage.receiver.react(subscription.path, { kind: "hang" });
    await publish(stage, subscription.event, 20);
    await stage.receiver.waitFor(8, 5_000, subscription.path);
    await stage.gatepost.server.kill();
    stage.receiver.react(subscription.path, { kind: "answer" });
    const next = await startNext(t, env);
    await stage.receiver.waitFor(28, TAKEOVER_MS, subscription.path);
    await sleep(200);
    assert.equal(stage.receiver.count(subscription.path), 28, "8 of them again");
    await next.stop();
    assert.deepEqual((await readdir(folder)).filter((name) => name.includes("process")), []);
  });

  test("after SIGKILL another process sends the deliveries, and not before", async (t) => {
    const { stage, env } = await open(t, {
      GATEPOST_CALLBACK_TIMEOUT: "60s",
      GATEPOST_CRON: "off",
    });
    const killed = await startNext(t, { ...env, GATEPOST_CRON: "on" });
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    stage.receiver.react(subscription.path, { kind: "hang" });
    await publish(stage, subscription.event, 12);
    await stage.receiver.waitFor(8, 5_000, subscription.path);
    const interval = { GATEPOST_DISTRIBUTE_INTERVAL: "100ms" };
    const living = await startNext(t, { ...env, ...interval, GATEPOST_CRON: "on" });
    stage.receiver.react(subscription.path, { kind: "answer" });
    await sleep(1_000); // it looks for deliveries many times
    assert.equal(stage.receiver.count(subscription.path), 8);
    await killed.server.kill();
    await stage.receiver.waitFor(20, TAKEOVER_MS, subscription.path);
    const requests = stage.receiver.requests(subscription.path);
    const ids = requests.map(({ headers }) => headers["webhook-id"]);
    assert.equal(new Set(ids).size, 12);
    assert.equal(new Set(ids.slice(8)).size, 12);
    await living.stop();
  });
});

/** Starts another server, which is killed at the end of the test. */
async function startNext(
  t: TestContext,
  env: Readonly<Record<string, string>>,
): Promise<Gatepost> {
  const gatepost = await startGatepost({ env });
  t.after(() => gatepost.server.kill());
  return gatepost;
}
