import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { untilIdle } from "../helpers/distributor_process.ts";
import { openStage, startGated } from "./distributor_stage.ts";

describe("stop()", () => {
  const claimed = sql`SELECT 1 FROM deliveries WHERE claim IS NOT NULL`;

  test("awaits attempts in flight, releases the rest and begins nothing more", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 40 });
    const process = await stage.runProcess();
    const stopped = process.distributor.stop(60_000);
    await untilIdle(process);
    await process.endAll(204);
    await stopped;
    assert.equal(process.begun.length, 8);
    assert.deepEqual(await stage.counts(), { delivered: 8, pending: 32 });
    assert.deepEqual(await stage.rows(claimed), []);
    const next = stage.startProcess({ respond: 204 }).wake();
    await stage.untilDelivered(40);
    assert.equal(next.begun.length, 32);
  });

  test("releases what is being claimed when it is called", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const { process, reached, open } = startGated(stage);
    await reached;
    const stopped = process.distributor.stop(0);
    open();
    await stopped;
    await untilIdle(process);
    assert.deepEqual(await stage.rows(claimed), []);
    assert.deepEqual([await stage.counts(), process.begun.length], [{ pending: 1 }, 0]);
  });

  test("aborts an attempt that takes too long, which is sent again as attempt 1", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const process = await stage.runProcess();
    await process.distributor.stop(20);
    assert.equal(process.open.length, 0);
    assert.deepEqual(await stage.rows(sql`SELECT 1 FROM attempts`), []);
    const next = stage.startProcess({ respond: 204 }).wake();
    await stage.untilDelivered(1);
    const sent = next.begun.map(({ id, attempt }) => [id, attempt]);
    assert.deepEqual(sent, [[process.ids()[0], 1]]);
  });

  test("leaves an unrecorded delivery to other processes", { timeout: 20_000 }, async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const database = stage.failing("INSERT INTO attempts", Infinity);
    const process = await stage.runProcess({ database, respond: 204 });
    await process.distributor.stop(60_000);
    assert.deepEqual(await stage.counts(), { pending: 1 });
  });

  test("is final: a later wake sends nothing", async (t) => {
    const stage = await openStage(t, { subscriptions: 1 });
    const process = stage.startProcess({ respond: 204 });
    await process.distributor.stop(0);
    await stage.dispatch();
    await process.run();
    assert.equal(process.begun.length, 0);
  });
});
