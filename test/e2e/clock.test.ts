import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, createClock } from "../helpers/clock.ts";
import { isOnRqlite } from "../helpers/engine.ts";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const HOUR_MS = 3_600_000;
/** Within this time the server notices that the clock has been set: two checks. */
const NOTICED_MS = 2_500;

let stage: EventStage;
let token: string;
let clock: Clock;
before(async () => {
  clock = await createClock();
  stage = await startEventStage({
    ...clock.env,
    GATEPOST_ACCESS_TOKEN_TTL: "30d",
    GATEPOST_RESEND_DELAYS: "3s",
    GATEPOST_DISTRIBUTE_INTERVAL: "1s",
    GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "4",
  });
  token = await stage.newConsumer();
});
after(async () => {
  await stage.stop();
  await clock.remove();
});

/** Sets the server's clock this far ahead of the true one, or behind it if negative. */
const setClock = (aheadMs: number) => clock.set(aheadMs, 0);

/** In a cluster, a node whose clock differs from those of the others is not ready. */
async function isReadyAsExpected(): Promise<boolean> {
  const isReady = (await stage.gatepost.api.get("/system/ready")).status === 200;
  return isReady !== isOnRqlite;
}

function warnings(): readonly string[] {
  return stage.gatepost.server.lines.filter((line) => line.includes("the clock has been set"));
}

test("an event after the clock was set is delivered even with an interval of 1 h", async () => {
  const other = await startEventStage({ ...clock.env, GATEPOST_DISTRIBUTE_INTERVAL: "1h" });
  try {
    const { event, path } = await other.subscribe(await other.newConsumer(), newName("e"));
    await setClock(5_000);
    await sleep(200);
    await other.dispatch(event, { n: 1 });
    await other.receiver.waitFor(1, PATIENCE_MS, path);
  } finally {
    await other.stop();
  }
});

describe("when the wall clock is set", () => {
  const SETTINGS = [["an hour behind", -HOUR_MS], ["two hours ahead", 2 * HOUR_MS]] as const;
  for (const [what, aheadMs] of SETTINGS) {
    test(`${what}, a resend keeps its true delay, and new events are delivered`, async () => {
      const { event, path } = await stage.subscribe(token, newName("e"), 500, 204);
      await stage.dispatch(event, { n: 1 });
      await stage.receiver.waitFor(1, PATIENCE_MS, path);
      await sleep(200); // until it is recorded
      const before = warnings().length;
      await setClock(aheadMs);
      const [first, second] = await stage.receiver.waitFor(2, 8_000, path);
      const waitMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
      assert.ok(waitMs >= 2_300, `after ${waitMs} ms`);
      assert.equal(await isReadyAsExpected(), true);
      assert.equal(warnings().length, before + 1);
      await stage.dispatch(event, { n: 2 });
      await stage.receiver.waitFor(3, PATIENCE_MS, path);
    });
  }

  test("30 s behind, a backlog is still delivered, each delivery once", async () => {
    await setClock(0);
    await sleep(NOTICED_MS);
    const { event, path } = await stage.subscribe(token, newName("e"));
    stage.receiver.react(path, { kind: "answer", delayMs: 200 });
    for (let n = 0; n < 60; n++) await stage.dispatch(event, { n });
    await stage.receiver.waitFor(4, PATIENCE_MS, path);
    await setClock(-30_000);
    const requests = await stage.receiver.waitFor(60, 15_000, path);
    await sleep(500);
    assert.equal(stage.receiver.count(path), 60);
    assert.equal(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, 60);
    assert.equal(await isReadyAsExpected(), true);
  });

  test("two hours ahead for half a second, a failed delivery is resent", async () => {
    await setClock(0);
    await sleep(NOTICED_MS);
    const { event, path } = await stage.subscribe(token, newName("e"), 500, 204);
    await setClock(2 * HOUR_MS);
    await sleep(100);
    await stage.dispatch(event, { n: 1 });
    await sleep(400);
    await setClock(0);
    await stage.receiver.waitFor(2, 12_000, path);
  });

  test("past a token's expiry and back, a revoked token stays revoked", async () => {
    await setClock(0);
    await sleep(NOTICED_MS);
    const revoked = await stage.newConsumer();
    await stage.gatepost.api.send("POST", "/authorization/revoke", { headers: bearer(revoked) });
    assert.equal(await stage.gatepost.isAlive(revoked), false);
    await setClock(31 * 24 * HOUR_MS);
    await sleep(1_000); // two checks for new revocations
    await setClock(0);
    await sleep(100);
    assert.equal(await stage.gatepost.isAlive(revoked), false);
    assert.equal(await stage.gatepost.isAlive(await stage.newConsumer()), true);
  });
});
