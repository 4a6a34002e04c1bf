import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { countRows } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";
import { until } from "../helpers/until.ts";
import { openStage } from "./distributor_stage.ts";

describe("distribution", () => {
  test("sends every event once to every subscription, while its clock stands still", async (t) => {
    const stage = await openStage(t, { subscriptions: 3, events: 100 });
    const process = stage.startProcess({ respond: 204 }).wake();
    await stage.untilDelivered(300);
    const sent = process.begun.map(({ endpoint, json }) => `${endpoint} ${json}`);
    assert.equal(sent.length, 300);
    assert.equal(new Set(sent).size, 300);
    assert.equal(new Set(process.ids()).size, 300);
  });

  test("leaves out a subscription that was made after the dispatch", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://before.example/");
    await stage.dispatch();
    await stage.subscribe("http://after.example/");
    const process = await stage.runProcess({ respond: 204 });
    assert.deepEqual(process.begun.map(({ endpoint }) => endpoint), ["http://before.example/"]);
  });

  test("marks an event as distributed if all its subscriptions are disabled", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    await stage.write(sql`UPDATE subscriptions SET status = 'disabled'`);
    stage.startProcess().wake();
    const distributed = sql`SELECT 1 FROM events WHERE status = 'distributed'`;
    await until(async () => (await stage.rows(distributed)).length === 1);
  });

  test("finishes 600 events without subscribers, reading at most 256 at once", async (t) => {
    const stage = await openStage(t, { events: 600 });
    const pending = sql`SELECT 1 FROM events WHERE status = 'pending'`;
    assert.equal((await stage.rows(pending)).length, 600);
    const { counted, found } = countRows(stage.database);
    stage.startProcess({ database: counted, respond: 204 }).wake();
    await until(async () => (await stage.rows(pending)).length === 0);
    assert.ok(found.most <= 256, `${found.most} were read at once`);
  });

  test("sends a small event while 300 large ones are being fanned out", async (t) => {
    const stage = await openStage(t, { subscriptions: 1 });
    await stage.write(
      sql`UPDATE subscriptions SET event = 'small'`,
      sql`${numbers(3000)}
         INSERT INTO subscriptions
           (id, principal, app, event, endpoint, status, secret, createdAtMs)
         SELECT id || i, principal, app, 'e', endpoint || i, 'paused', secret, createdAtMs
         FROM subscriptions, n`,
    );
    await stage.dispatch(300);
    const process = stage.startProcess({ respond: 204 }).wake();
    const countPending = async () => Number((await stage.counts())["pending"]);
    await until(async () => await countPending() > 0);
    await stage.dispatch(1, "small");
    const known = await countPending();
    process.wake();
    await until(() => process.begun.length === 1);
    const more = await countPending() - known;
    assert.ok(more < 20_000, `after ${more} deliveries of others`);
  });

  test("reaches more subscriptions than one batch holds", async (t) => {
    const stage = await openStage(t);
    for (let part = 0; part < 12; part++) await stage.subscribeMany(100);
    await stage.dispatch();
    const process = stage.startProcess({ respond: 204 }).wake();
    await stage.untilDelivered(1200);
    assert.equal(process.begun.length, 1200);
  });
});
