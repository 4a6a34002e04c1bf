// On SQLite alone: no cluster has a database of version 0.1.0.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { writeOldDatabase } from "../helpers/old_database.ts";
import { bearer } from "../helpers/requests.ts";
import { assertOAuthError, readObject, readTokens } from "../helpers/responses.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import written from "../fixtures/gatepost-0.1.0.json" with { type: "json" };

const LONG = "3650d";

let gatepost: Gatepost;
let receiver: Receiver;
let folder: string;
before(async () => {
  folder = await createDataFolder();
  writeOldDatabase(join(folder, "gatepost.db"));
  receiver = await startReceiver();
  gatepost = await startGatepost({
    folder,
    env: {
      GATEPOST_BASE_URL: "http://gatepost.test",
      GATEPOST_SECRET_KEY: written.secretKey,
      GATEPOST_REFRESH_TOKEN_TTL: LONG,
      GATEPOST_RETENTION: LONG,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    },
  });
});
after(async () => {
  await gatepost.stop();
  await receiver.close();
  await rm(folder, { recursive: true });
});

/** Sends JSON with a token; the response must have the status. */
async function send(method: string, path: string, token: string, body: object, status: number) {
  const headers = { ...bearer(token), "content-type": "application/json" };
  const response = await gatepost.api.send(method, path, { headers, body: JSON.stringify(body) });
  assert.equal(response.status, status, response.text);
}

/** Points a paused subscription at the receiver and activates it: its event must arrive. */
async function resume(token: string, subscription: { id: string; secret: string }) {
  const path = `/${subscription.id}`;
  const change = { endpoint: receiver.url + path, status: "active" };
  await send("PATCH", `/consumer/subscription/${subscription.id}`, token, change, 200);
  const [waited] = await receiver.waitFor(1, 5000, path);
  assert.ok(waited);
  assert.equal(waited.body.toString(), '{"id":1}');
  assert.equal(findSignatureFault(waited, subscription.secret, Date.now()), undefined);
}

async function items(path: string): Promise<readonly Record<string, unknown>[]> {
  const response = await gatepost.api.get(path, bearer(gatepost.adminToken));
  const { items } = readObject(response);
  assert.ok(Array.isArray(items), response.text);
  return items;
}

describe("a database written by 0.1.0", () => {
  test("is migrated to the newest schema, and the log says so once", () => {
    const lines = gatepost.server.lines.filter((line) => line.includes("migrated"));
    const [{ msg, from, to }] = lines.map((line) => JSON.parse(line));
    assert.deepEqual([lines.length, msg, from], [1, "the database has been migrated", 1]);
    assert.ok(to > 1);
  });

  test("lets its users log in, and no disabled ones", async () => {
    const token = await gatepost.login(written.user);
    assert.equal(await gatepost.isAlive(token), true);
    const { username, password } = written.disabled;
    const refused = await gatepost.api.postJson("/consumer/login", { username, password });
    assert.equal(refused.status, 401);
  });

  test("accepts the secrets of its apps, and its public app can sign users in", async () => {
    readTokens(await gatepost.token(written.service, { grant_type: "client_credentials" }));
    const tokens = await gatepost.codeTokens(written.publicApp, written.user);
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
  });

  test("delivers its pending events, signed with the old secrets", async () => {
    await resume(await gatepost.login(written.user), written.ownSubscription);
    const tokens = await gatepost.codeTokens(written.app, written.user);
    await resume(tokens.access_token, written.throughSubscription);
    const service = await gatepost.token(written.service, { grant_type: "client_credentials" });
    await resume(readTokens(service).access_token, written.serviceSubscription);
  });

  test("delivers new events to its subscriptions", async () => {
    const { id } = written.ownSubscription;
    const event = { name: "order.created", data: { id: 3 } };
    await send("POST", "/backend/event", gatepost.adminToken, event, 202);
    const requests = await receiver.waitFor(2, 5000, `/${id}`);
    assert.deepEqual(requests.map(({ body }) => body.toString()), ['{"id":1}', '{"id":3}']);
  });

  test("exchanges its refresh tokens, and refuses used ones", async () => {
    const exchange = (refresh_token: string) =>
      gatepost.token(written.app, { grant_type: "refresh_token", refresh_token });
    const renewed = readTokens(await exchange(written.otherRefreshToken));
    assert.equal(await gatepost.isAlive(renewed.access_token), true);
    readTokens(await exchange(renewed.refresh_token));

    assertOAuthError(await exchange(written.usedRefreshToken), 400, "invalid_grant");
    assertOAuthError(await exchange(written.refreshToken), 400, "invalid_grant");
  });

  test("resends its failed deliveries", async () => {
    const { id } = written.failingSubscription;
    const token = await gatepost.login(written.user);
    const endpoint = `${receiver.url}/resent`;
    await send("PATCH", `/consumer/subscription/${id}`, token, { endpoint }, 200);
    await send("POST", "/backend/delivery/resend", gatepost.adminToken, { status: "failed" }, 202);
    const [resent] = await receiver.waitFor(1, 5000, "/resent");
    assert.equal(resent?.body.toString(), '{"id":2}');
  });

  test("keeps its users, apps, grants, events, keys and audit", async () => {
    const count = async (path: string) => (await items(path)).length;
    assert.equal(await count("/backend/user"), 3);
    assert.equal(await count("/backend/app"), 3);
    assert.equal(await count("/backend/subscription"), 4);
    assert.ok(await count(`/backend/grant?user=${written.user.id}&limit=200`) >= 3);
    const events = (await items("/backend/event")).map(({ name }) => name);
    assert.ok(events.includes("order.created") && events.includes("order.failed"));
    const actions = (await items("/backend/audit?limit=200")).map(({ action }) => action);
    for (const action of ["user.create", "user.change", "app.create", "key.rotate"]) {
      assert.ok(actions.includes(action), action);
    }
    assert.ok(await count("/backend/key") >= 1); // the one that signed before is purged by now
  });
});
