import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type EventStage, readItems, startEventStage } from "../helpers/event_stage.ts";
import { type Gatepost, newName, startGatepost } from "../helpers/gatepost.ts";
import { type Reaction, type Receiver, startReceiver } from "../helpers/receiver.ts";
import { until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));

interface Stage extends EventStage {
  /** Makes a receiver of its own, which is measured alone. */
  openReceiver(): Promise<Receiver>;
  /**
   * Makes a subscription with an event of its own, of four users by turns or of the one with this
   * token; returns the event's name.
   */
  subscribeAt(receiver: Receiver, reaction: Reaction, token?: string): Promise<string>;
  /** Dispatches so many of the event in one request. */
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
      const answer = await stage.call("POST", "/consumer/subscription", token, body);
      assert.equal(answer.status, 201, answer.text);
      return event;
    },
    async publish(event, count, through = stage.gatepost) {
      const events = Array.from({ length: count }, (_, n) => ({ name: event, data: { n } }));
      const answer = await through.api.postJson("/dispatch", { events });
      assert.equal(answer.status, 202, answer.text);
    },
  };
}

describe("the caps, as the receiver sees them", () => {
  test("8 requests of one subscription are in flight, nearly 64 in all", async (t) => {
    const stage = await open(t);
    const slow: Reaction = { kind: "answer", delayMs: 400 };
    const one = await stage.openReceiver();
    await stage.publish(await stage.subscribeAt(one, slow), 20);
    await one.waitFor(20, 5_000);
    assert.equal(one.peak(), 8);
    const all = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 12; count++) events.push(await stage.subscribeAt(all, slow));
    await Promise.all(events.map((event) => stage.publish(event, 16)));
    await all.waitFor(12 * 16, 10_000);
    // Four users leave some to a fifth.
    assert.ok(all.peak() >= 56 && all.peak() < 64, String(all.peak()));
  });

  test("one principal's subscriptions have three quarters of the slots", async (t) => {
    const stage = await open(t);
    const token = await stage.newConsumer();
    const receiver = await stage.openReceiver();
    const slow: Reaction = { kind: "answer", delayMs: 400 };
    const events: string[] = [];
    for (let count = 0; count < 9; count++) {
      events.push(await stage.subscribeAt(receiver, slow, token));
    }
    await Promise.all(events.map((event) => stage.publish(event, 1)));
    await receiver.waitFor(9, 5_000); // a success each, so that they are known to be well
    await Promise.all(events.map((event) => stage.publish(event, 12)));
    await receiver.waitFor(9 * 13, 10_000);
    assert.equal(receiver.peak(), 48);
  });

  test("they are as configured", async (t) => {
    const stage = await open(t, {
      GATEPOST_CALLBACK_CONCURRENCY: "5",
      GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "2",
    });
    const slow: Reaction = { kind: "answer", delayMs: 100 };
    const one = await stage.openReceiver();
    await stage.publish(await stage.subscribeAt(one, slow), 10);
    await one.waitFor(10, 5_000);
    assert.equal(one.peak(), 2);
    const all = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 4; count++) events.push(await stage.subscribeAt(all, slow));
    await Promise.all(events.map((event) => stage.publish(event, 10)));
    await all.waitFor(40, 5_000);
    assert.equal(all.peak(), 5);
  });

  test("a subscription that fails has one request in flight until it succeeds", async (t) => {
    const delayMs = 250;
    const stage = await open(t, { GATEPOST_RESEND_DELAYS: "none" });
    const receiver = await stage.openReceiver();
    const event = await stage.subscribeAt(receiver, { kind: "answer", status: 500, delayMs });
    await stage.publish(event, 60);
    const requests = await receiver.waitFor(13, 5_000);
    assert.equal(receiver.peak(), 8, "before the first failure");
    const waits = requests.slice(1).map(({ atMs }, index) => atMs - (requests[index]?.atMs ?? 0));
    const afterFirst = waits.slice(7);
    assert.ok(afterFirst.every((ms) => ms > delayMs - 50), `one after the other: ${afterFirst}`);
    receiver.react(requests[0]?.url ?? "", { kind: "answer", delayMs: 100 });
    await receiver.waitFor(60, 5_000);
    const last = receiver.requests().slice(-20);
    assert.ok((last.at(-1)?.atMs ?? 0) - (last[0]?.atMs ?? 0) < 700, "many at once again");
  });

  test("all that fail together have half of the slots; others go out at once", async (t) => {
    const stage = await open(t, {
      GATEPOST_CALLBACK_CONCURRENCY: "8",
      GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "4",
      GATEPOST_RESEND_DELAYS: "none",
    });
    // Slow rather than silent: when such a request ends, its receiver is the first to know.
    const failing: Reaction = { kind: "answer", status: 500, delayMs: 300 };
    const dead = await stage.openReceiver();
    const events: string[] = [];
    for (let count = 0; count < 30; count++) {
      events.push(await stage.subscribeAt(dead, failing));
    }
    await Promise.all(events.map((event) => stage.publish(event, 1)));
    await until(async () => {
      const path = "/backend/delivery?status=failed&limit=200";
      return readItems(await stage.call("GET", path, stage.admin)).length === 30;
    });
    const paths = dead.requests().map(({ url }) => url);
    dead.clear(); // the peak, but the reactions, too
    for (const path of paths) dead.react(path, failing);
    await Promise.all(events.map((event) => stage.publish(event, 4)));
    await dead.waitFor(4, 2_000);
    const healthy = await stage.openReceiver();
    const event = await stage.subscribeAt(healthy, { kind: "answer" });
    const latencies: number[] = [];
    for (let turn = 1; turn <= 10; turn++) {
      const startedMs = performance.now();
      await stage.publish(event, 1);
      await healthy.waitFor(turn, 2_000);
      latencies.push(Math.round(performance.now() - startedMs));
    }
    const median = latencies.toSorted((left, right) => left - right)[5] ?? Infinity;
    assert.ok(median < 200, `the others take 300 ms each: ${latencies}`);
    assert.equal(dead.peak(), 4);
  });
});

test("an endpoint that hangs, with hundreds pending, does not delay another", async (t) => {
  const stage = await open(t, { GATEPOST_CALLBACK_TIMEOUT: "4s" });
  const [hanging, healthy] = [await stage.openReceiver(), await stage.openReceiver()];
  await stage.publish(await stage.subscribeAt(hanging, { kind: "hang" }), 500);
  await hanging.waitFor(8, 5_000);
  const event = await stage.subscribeAt(healthy, { kind: "answer" });
  const startedMs = performance.now();
  await stage.publish(event, 200);
  await healthy.waitFor(200, 5_000);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs < 3_500, `${tookMs} ms for 200, all within one timeout of the other`);
  assert.equal(hanging.count(), 8);
});

test("a name that hangs in its look-up does not delay another", async (t) => {
  const stage = await open(t, { GATEPOST_CALLBACK_TIMEOUT: "2s" });
  const token = await stage.newConsumer();
  const event = newName("e");
  // Whatever the system's resolver says of these: at worst nothing for seconds.
  for (let count = 0; count < 10; count++) {
    const endpoint = `http://${newName("slow")}.invalid/`;
    const answer = await stage.call("POST", "/consumer/subscription", token, { event, endpoint });
    assert.equal(answer.status, 201);
  }
  await stage.publish(event, 4);
  const healthy = await stage.openReceiver();
  const startedMs = performance.now();
  await stage.publish(await stage.subscribeAt(healthy, { kind: "answer" }), 50);
  await healthy.waitFor(50, 5_000);
  assert.ok(performance.now() - startedMs < 1_500);
});

test("two processes on one database send nothing twice and leave nothing out", async (t) => {
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
  for (let turn = 0; turn < 20; turn++) {
    await Promise.all([stage.gatepost, second].flatMap((through) =>
      events.map((event) => stage.publish(event, 5, through))
    ));
  }
  await receiver.waitFor(600, 10_000);
  await sleep(500);
  const ids = receiver.requests().map(({ headers }) => headers["webhook-id"]);
  assert.deepEqual([ids.length, new Set(ids).size], [600, 600]);
});
