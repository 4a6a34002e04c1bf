import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../src/base/id.ts";
import { createEngine } from "../../src/database/engine.ts";
import { sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { listFigures } from "../../src/store/figures.ts";
import { configOf } from "../helpers/config.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { type HandleProxied, startRqliteProxy } from "../helpers/rqlite_proxy.ts";
import { startRqlited } from "../helpers/rqlited.ts";
import { until } from "../helpers/until.ts";
import { countDelivered, dispatch, open, type Stage, subscribe } from "./worker_stage.ts";

/** Opens a worker on a new cluster; its requests pass `handle`, if there is one. */
async function openOnCluster(t: TestContext, handle?: HandleProxied): Promise<Stage> {
  const ends = new AsyncDisposableStack();
  const afterWorker = { after: (end: () => Promise<void> | void) => ends.defer(async () => end()) };
  const { address, nodes: [{ url } = { url: "" }] } = await startRqlited(afterWorker);
  const database = await (await createEngine(configOf({ GATEPOST_DATABASE: address }))).open();
  afterWorker.after(database.close);
  const proxy = handle && await startRqliteProxy(afterWorker, url, handle);
  const path = proxy ? `rqlite://${proxy.host}` : address;
  const stage = open(t, { GATEPOST_DATABASE: path }, database);
  t.after(() => ends.disposeAsync());
  return stage;
}

test("on a cluster the worker delivers, and is listed in processes until it stops", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const stage = await openOnCluster(t);
  await subscribe(stage, `${receiver.url}/a`);
  assert.deepEqual(await stage.started, { ok: true });
  await dispatch(stage, 5);
  await until(async () => await countDelivered(stage.database) === 5);
  const present = sql`SELECT name FROM processes`;
  assert.deepEqual(await stage.database.query(present), [{ name: "c1" }]);
  await stage.worker.stop(1_000);
  assert.deepEqual(await stage.database.query(present), []);
});

test("on a cluster nothing is taken over, or called late, while the clock is wrong", async (t) => {
  let aheadSeconds = -3600;
  const stage = await openOnCluster(t, async (path, response, pass) => {
    if (!path.includes("unixepoch")) return false;
    const passed = await pass();
    const content = await passed.text();
    // A whole second has no fraction.
    const change = (seconds: string) => String(Number(seconds) + aheadSeconds);
    response.writeHead(passed.status).end(content.replace(/(?<="values":\[\[)[\d.]+/, change));
    return true;
  });
  const { database } = stage;
  await subscribe(stage, "http://127.0.0.1:9/");
  const leaseMs = Date.now() + 3_600_000;
  await database.write([
    sql`INSERT INTO processes (name, beat) VALUES ('c9', 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, claim)
      VALUES ('d1', 'e1', 1, 'pending', ${leaseMs}, 'c9'),
        ('d2', 'e2', 1, 'pending', ${leaseMs}, 'c1')`, // claimed by a dead thread of this process
    insertEvent({
      id: newId("e", Date.now()), name: "x", json: "1", subject: undefined, createdAtMs: 0,
    }),
  ]);
  await stage.started;
  const look = async () => {
    await stage.worker.look();
    return database.query<{ claim: string | null }>(
      sql`SELECT claim, dueAtMs FROM deliveries ORDER BY id`,
    );
  };
  for (const endMs = Date.now() + 8_000; Date.now() < endMs; await sleep(500)) {
    assert.deepEqual(await look(), [
      { claim: "c9", dueAtMs: leaseMs },
      { claim: "c1", dueAtMs: leaseMs },
    ]);
  }
  assert.deepEqual(await listFigures(database, "overdue", "hour", 0, Date.now()), []);
  aheadSeconds = 0;
  await until(async () => (await look())[0]?.claim !== "c9");
});
