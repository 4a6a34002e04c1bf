import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createSeal } from "../../src/base/seal.ts";
import type { CallbackSender } from "../../src/delivery/callback.ts";
import type { DistributorOptions } from "../../src/delivery/distributor.ts";
import { createQueues } from "../../src/delivery/queues.ts";
import type { Recorder } from "../../src/delivery/recorder.ts";
import { createSender } from "../../src/delivery/sender.ts";
import { UnavailableError } from "../../src/database/database.ts";
import { createShortageWatch } from "../../src/delivery/shortage_watch.ts";
import { SILENT } from "../helpers/silent_log.ts";

const SEAL = createSeal(undefined);
const DELIVERY = {
  id: "d1", subscription: 1, subscriptionId: "s1", event: "a", json: "1", attempt: 1,
  endpoint: "https://a.example/",
  secret: SEAL.encrypt("whsec_", "s1"), oldSecret: null, oldSecretUntilMs: null,
};

/** A sender with one delivery in its queue, and what became of it. */
function stage(query: () => Promise<unknown[]>) {
  const queues = createQueues({ total: 1, perSubscription: 1 });
  const reserved = queues.reserve(
    { subscription: 1, health: "healthy", principal: "u1", meanMs: 0 }, 1);
  queues.add(1, reserved, [{ id: DELIVERY.id, subscription: 1 }]);
  const attempt = Promise.withResolvers<Awaited<ReturnType<CallbackSender["send"]>>>();
  const called = Promise.withResolvers<void>();
  const became: string[] = [];
  const recorder = {
    async record() {
      became.push("recorded");
    },
    async release(deliveries: readonly object[]) {
      if (deliveries.length > 0) became.push("released");
    },
  } as unknown as Recorder;
  const options = {
    database: { query }, settings: { callbackTimeoutMs: 1, resendDelaysMs: [] }, claim: "c1",
    callbacks: {
      send() {
        called.resolve();
        return attempt.promise;
      },
      abort: () => became.push("aborted"),
    },
    log: SILENT, now: () => 1, elapsedMs: () => 1, seal: SEAL, observe() {},
  } as unknown as DistributorOptions;
  const shortages = createShortageWatch(SILENT, () => 1);
  const parts = { queues, recorder, shortages, maySend: () => true, gather() {} };
  return { sender: createSender(options, parts), queues, called, attempt, became };
}

test("a delivery that cannot be read now is released, and its slot is free", async () => {
  const { sender, queues, became } = stage(() => Promise.reject(new UnavailableError("locked")));
  sender.send();
  while (became.length === 0) await nextTurn();
  assert.deepEqual([became, queues.inFlight()], [["released"], 0]);
});

test("a success that arrives during the abort is recorded, not released", async () => {
  const { sender, called, attempt, became } = stage(async () => [DELIVERY]);
  sender.send();
  await called.promise;
  const stopped = sender.stop(0);
  while (became.length === 0) await nextTurn();
  attempt.resolve({ outcome: { kind: "response", status: 204 }, snippet: undefined });
  await stopped;
  assert.deepEqual(became, ["aborted", "recorded"]);
});
