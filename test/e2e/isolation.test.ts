import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { OFFLINE } from "../helpers/offline.ts";
import { type Reaction, type Receiver, startReceiver } from "../helpers/receiver.ts";
import { newName } from "../helpers/requests.ts";
import { readItems } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));

interface Stage extends EventStage {
  /** Starts another receiver, which is measured separately. */
  openReceiver(): Promise<Receiver>;
  /**
   * Makes a subscription to a new event, for the next of four users or for the one with this token;
   * returns the event's name.
   */
  subscribeAt(receiver: Receiver, reaction: Reaction, token?: string): Promise<string>;
  /** Dispatches the event `count` times in one request. */
  publish(event: string, count: number, through?: Gatepost): Promise<void>;
}

async function open(t: TestContext, env: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const stage = await startEventStage({ GATEPOST_ENDPOINTS: ENDPOINTS, ...env });
  const tokens = await Promise.all(Array.from({ length: 4 }, () => stage.newConsumer()));
  const receivers: Receiver[] = [];
  let made = 0;
  t.after(async () => {
    await Promise.all(receivers.map((receiver) => receiver.close()));
    await stage.stop();
  });
  return {
    ...stage,
    async openReceiver() {
      const receiver = await startReceiver();
      receivers.push(receiver);
      return receiver;
    },
    async subscribeAt(receiver, reaction, token = tokens[made++ % tokens.length] ?? "") {
      const [event, path] = [newName("e"), `/${newName("hook")}`];
      receiver.react(path, reaction);
      const body = { event, endpoint: receiver.url + path };
      const response = await stage.call("POST", "/consumer/subscription", token, body);
      assert.equal(response.status, 201, response.text);
      return event;
    },
    async publish(event, count, through = stage.gatepost) {
      const events = Array.from({ length: count }, (_, n) => ({ name: event, data: { n } }));
      const response = await through.api.postJson("/dispatch", { events });
      assert.equal(response.status, 202, response.text);
    },
  };
}

const HANG: Reaction = { kind: "hang" };
const RESPOND: Reaction = { kind: "answer" };
/** A callback may hang longer than any test takes. */
const PATIENT = { GATEPOST_CALLBACK_TIMEOUT: "2m" };

/** Sets the reaction of every path that the receiver has had a request for. */
function reactEverywhere(receiver: Receiver, reaction: Reaction): void {
  for (const { url } of receiver.requests()) receiver.react(url, reaction);
}

/** Waits until so many requests hang, and asserts that no more do 500 ms later. */
async function assertHanging(receiver: Receiver, count: number): Promise<void> {
  await until(() => receiver.hanging() >= count, () => `${receiver.hanging()} of ${count} hang`);
  await sleep(500);
  assert.equal(receiver.hanging(), count);
}

/** Responds to everything until so many requests have arrived in total. */
async function drain(receiver: Receiver, count: number): Promise<void> {
  reactEverywhere(receiver, RESPOND);
  receiver.release();
  await receiver.waitFor(count, PATIENCE_MS);
}

/** Lets each subscription succeed once, so that it is healthy; then its requests hang. */
async function hangOnceHealthy(stage: Stage, receiver: Receiver, events: readonly string[]) {
  await Promise.all(events.map((event) => stage.publish(event, 1)));
  await receiver.waitFor(events.length, PATIENCE_MS);
  reactEverywhere(receiver, HANG);
}

describe("the limits of callbacks in flight", () => {
  test("are 8 for one subscription, and nearly 64 in total", async (t) => {
    const stage = await open(t, PATIENT);
    const one = await stage.openReceiver();
    await stage.publish(await stage.subscribeAt(one, HANG), 20);
    await assertHanging(one, 8);
    await drain(one, 20);
    assert.equal(one.peak(), 8);
    const all = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 12; count++) events.push(await stage.subscribeAt(all, RESPOND));
    await hangOnceHealthy(stage, all, events);
    await Promise.all(events.map((event) => stage.publish(event, 16)));
    await until(() => all.hanging() >= 56);
    await drain(all, 12 * 17);
    // Four users leave some capacity for a fifth.
    assert.ok(all.peak() >= 56 && all.peak() < 64, String(all.peak()));
  });

  test("give one principal's subscriptions three quarters of the capacity", async (t) => {
    const stage = await open(t, PATIENT);
    const token = await stage.newConsumer();
    const receiver = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 9; count++) {
      events.push(await stage.subscribeAt(receiver, RESPOND, token));
    }
    await hangOnceHealthy(stage, receiver, events);
    await Promise.all(events.map((event) => stage.publish(event, 12)));
    await assertHanging(receiver, 48);
    await drain(receiver, 9 * 13);
    assert.equal(receiver.peak(), 48);
  });

  test("are as configured", async (t) => {
    const stage = await open(t, {
      ...PATIENT,
      GATEPOST_CALLBACK_CONCURRENCY: "5",
      GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "2",
    });
    const one = await stage.openReceiver();
    await stage.publish(await stage.subscribeAt(one, HANG), 10);
    await assertHanging(one, 2);
    await drain(one, 10);
    assert.equal(one.peak(), 2);
    const all = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 4; count++) events.push(await stage.subscribeAt(all, RESPOND));
    await hangOnceHealthy(stage, all, events);
    await Promise.all(events.map((event) => stage.publish(event, 10)));
    await assertHanging(all, 5);
    await drain(all, 44);
    assert.equal(all.peak(), 5);
  });

  test("allow one request to a failing subscription until it succeeds", async (t) => {
    const stage = await open(t, { ...PATIENT, GATEPOST_RESEND_DELAYS: "none" });
    const receiver = await stage.openReceiver();
    await stage.publish(await stage.subscribeAt(receiver, HANG), 60);
    await assertHanging(receiver, 8);
    for (let failures = 0; failures < 4; failures++) {
      receiver.release(500);
      await assertHanging(receiver, 1);
    }
    receiver.release();
    await assertHanging(receiver, 8);
    await drain(receiver, 60);
    assert.equal(receiver.peak(), 8);
  });

  test("leave half of the capacity to others if many subscriptions fail", async (t) => {
    const stage = await open(t, {
      ...PATIENT,
      GATEPOST_CALLBACK_CONCURRENCY: "8",
      GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "4",
      GATEPOST_RESEND_DELAYS: "none",
    });
    const dead = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 30; count++) {
      events.push(await stage.subscribeAt(dead, { kind: "answer", status: 500 }));
    }
    await Promise.all(events.map((event) => stage.publish(event, 1)));
    await until(async () => {
      const path = "/backend/delivery?status=failed&limit=200";
      return readItems(await stage.call("GET", path, stage.admin)).length === 30;
    });
    reactEverywhere(dead, HANG);
    await Promise.all(events.map((event) => stage.publish(event, 4)));
    await assertHanging(dead, 4);
    const healthy = await stage.openReceiver();
    const event = await stage.subscribeAt(healthy, RESPOND);
    for (let count = 1; count <= 10; count++) {
      await stage.publish(event, 1);
      await healthy.waitFor(count, PATIENCE_MS);
    }
    await assertHanging(dead, 4);
  });
});

test("an endpoint that hangs with hundreds of pending callbacks delays no other", async (t) => {
  const stage = await open(t, PATIENT);
  const [hanging, healthy] = [await stage.openReceiver(), await stage.openReceiver()];
  await stage.publish(await stage.subscribeAt(hanging, HANG), 500);
  await hanging.waitFor(8, PATIENCE_MS);
  await stage.publish(await stage.subscribeAt(healthy, RESPOND), 200);
  await healthy.waitFor(200, PATIENCE_MS);
  assert.deepEqual([hanging.count(), hanging.hanging()], [8, 8]);
});

test("a host name whose lookup hangs does not delay callbacks", { skip: OFFLINE }, async (t) => {
  const stage = await open(t, PATIENT);
  const token = await stage.newConsumer();
  const event = newName("e");
  // At worst the system's resolver finds no result for seconds.
  for (let count = 0; count < 10; count++) {
    const endpoint = `http://${newName("slow")}.invalid/`;
    const response = await stage.call("POST", "/consumer/subscription", token, { event, endpoint });
    assert.equal(response.status, 201);
  }
  await stage.publish(event, 4);
  const healthy = await stage.openReceiver();
  const startedMs = performance.now();
  await stage.publish(await stage.subscribeAt(healthy, RESPOND), 50);
  await healthy.waitFor(50, PATIENCE_MS);
  assert.ok(performance.now() - startedMs < 5_000, "a resolver waits that long for one reply");
});

test("two processes on one database send each delivery exactly once", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-two-"));
  const env = {
    GATEPOST_DATABASE: join(folder, "gatepost.db"),
    GATEPOST_ENDPOINTS: ENDPOINTS,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_DISTRIBUTE_INTERVAL: "50ms",
  };
  const stage = await open(t, env);
  const second = await startGatepost({ env });
  t.after(async () => {
    await second.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const receiver = await stage.openReceiver();
  const events = [
    await stage.subscribeAt(receiver, { kind: "answer", delayMs: 5 }),
    await stage.subscribeAt(receiver, { kind: "answer" }),
    await stage.subscribeAt(receiver, { kind: "answer", delayMs: 20 }),
  ];
  for (let round = 0; round < 20; round++) {
    await Promise.all([stage.gatepost, second].flatMap((through) =>
      events.map((event) => stage.publish(event, 5, through))
    ));
  }
  await receiver.waitFor(600, PATIENCE_MS);
  await sleep(500);
  const ids = receiver.requests().map(({ headers }) => headers["webhook-id"]);
  assert.deepEqual([ids.length, new Set(ids).size], [600, 600]);
});
