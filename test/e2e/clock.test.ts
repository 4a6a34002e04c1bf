import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, createClock } from "../helpers/clock.ts";
import { isOnRqlite } from "../helpers/engine.ts";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { bearer, newName } from "../helpers/gatepost.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const HOUR_MS = 3_600_000;
/** How long the clock is wrong at least before the server must have noticed: two looks. */
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

/** Sets the server's clock so far ahead of the true one, or behind it. */
const setClock = (aheadMs: number) => clock.set(aheadMs, 0);

/** On a cluster a node is not ready whose clock differs from those of the others. */
async function isAsReadyAsMayBe(): Promise<boolean> {
  const isReady = (await stage.gatepost.api.get("/system/ready")).status === 200;
  return isReady !== isOnRqlite;
}

function warnings(): readonly string[] {
  return stage.gatepost.server.lines.filter((line) => line.includes("the clock has been set"));
}

test("what is dispatched after the clock was set goes out, whatever the interval", async () => {
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

describe("when the clock on the wall is set", () => {
  const SETTINGS = [["back by an hour", -HOUR_MS], ["forward by two", 2 * HOUR_MS]] as const;
  for (const [what, aheadMs] of SETTINGS) {
    test(`${what}, a resend comes at its true time, and what is dispatched goes out`, async () => {
      const { event, path } = await stage.subscribe(token, newName("e"), 500, 204);
      await stage.dispatch(event, { n: 1 });
      await stage.receiver.waitFor(1, PATIENCE_MS, path);
      await sleep(200); // it is recorded
      const before = warnings().length;
      await setClock(aheadMs);
      const [first, second] = await stage.receiver.waitFor(2, 8_000, path);
      const waitMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
      assert.ok(waitMs >= 2_300, `after ${waitMs} ms`);
      assert.equal(await isAsReadyAsMayBe(), true);
      assert.equal(warnings().length, before + 1);
      await stage.dispatch(event, { n: 2 });
      await stage.receiver.waitFor(3, PATIENCE_MS, path);
    });
  }

  test("back by 30 s, a backlog goes on going out, each delivery once", async () => {
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
    assert.equal(await isAsReadyAsMayBe(), true);
  });

  test("forward by two hours for half a second, a failed attempt is sent again", async () => {
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

  test("forward past a token's life and back, a token that was revoked stays so", async () => {
    await setClock(0);
    await sleep(NOTICED_MS);
    const revoked = await stage.newConsumer();
    await stage.gatepost.api.send("POST", "/authorization/revoke", { headers: bearer(revoked) });
    assert.equal(await stage.gatepost.isAlive(revoked), false);
    await setClock(31 * 24 * HOUR_MS);
    await sleep(1_000); // two looks at what has been revoked
    await setClock(0);
    await sleep(100);
    assert.equal(await stage.gatepost.isAlive(revoked), false);
    assert.equal(await stage.gatepost.isAlive(await stage.newConsumer()), true);
  });
});
