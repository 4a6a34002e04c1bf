// On SQLite alone: it locks the file.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const SHOP = join(import.meta.dirname, "../../scripts/demo/shop");

test("an order whose event cannot be stored is kept, and its event comes later", async (t) => {
  const stage = await startEventStage({ GATEPOST_ENDPOINTS: SHOP, SHOP_DATABASE: ":memory:" });
  t.after(() => stage.stop());
  const staff = await stage.newConsumer(["consumer", "shop:staff", "shop:order"]);
  const { path } = await stage.subscribe(staff, "shop.order.placed");
  const blocker = new DatabaseSync(join(stage.gatepost.server.folder, "gatepost.db"));
  blocker.exec("BEGIN IMMEDIATE");
  const body = { reference: newName("basket"), sku: "lamp" };
  const made = await stage.call("POST", "/shop/orders", staff, body)
    .finally(() => blocker.close());
  assert.equal(made.status, 201, made.text);
  const [callback] = await stage.receiver.waitFor(1, PATIENCE_MS, path);
  assert.deepEqual(JSON.parse(String(callback?.body)), readObject(made));
  assert.ok(stage.gatepost.server.lines.some((line) => line.includes("the outbox will")));
});
