import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, createClock } from "../helpers/clock.ts";
import { isOnRqlite } from "../helpers/engine.ts";
import { PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";
import { expectStatus, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Within this time the server notices that the clock has been set: two checks. */
const NOTICED_MS = 2_500;

let clock: Clock;
let folder: string;
let receiver: Receiver;
before(async () => {
  clock = await createClock();
  receiver = await startReceiver();
});
after(async () => {
  await clock.remove();
  await receiver.close();
});
beforeEach(async () => {
  folder = await createDataFolder();
});
afterEach(() => rm(folder, { recursive: true }));

const start = (env: Readonly<Record<string, string>> = {}) =>
  startGatepost({
    folder,
    env: {
      ...clock.env,
      GATEPOST_ACCESS_TOKEN_TTL: "30d",
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_RESEND_DELAYS: "3s",
      ...env,
    },
  });

// In a cluster the clock of a node is compared with those of the others.
describe("after the clock was wrong", { skip: isOnRqlite }, () => {
  test("a user whose password was changed meanwhile can log in, after a restart too", async () => {
    await clock.set(400 * DAY_MS);
    let gatepost = await start();
    const user = await gatepost.createUser();
    const app = await gatepost.createApp({ trusted: true });
    const old = await gatepost.login(user);
    const changed = { ...user, password: `${PASSWORD} of then` };
    await gatepost.change(user, { password: changed.password });
    await clock.set(0, NOTICED_MS);
    for (const isLast of [false, true]) {
      assert.equal(await gatepost.isAlive(old), false);
      assert.equal(await gatepost.isAlive(await gatepost.login(changed)), true);
      await gatepost.code(app, changed);
      await gatepost.stop();
      if (!isLast) gatepost = await start();
    }
  });

  for (const [what, firstMs, secondMs] of [
    ["a day behind at a start", 0, -DAY_MS],
    ["a day ahead before a start", DAY_MS, 0],
  ] as const) {
    test(`a resend waits for at most an hour if the clock was ${what}`, async () => {
      await clock.set(firstMs);
      const first = await start();
      receiver.react("/hook", { kind: "answer", status: 500 });
      const subscription = { event: "e", endpoint: `${receiver.url}/hook` };
      const asAdmin = bearer(first.adminToken);
      const { api } = first;
      const count = receiver.count("/hook");
      await expectStatus(201, api.postJson("/consumer/subscription", subscription, asAdmin));
      await expectStatus(202, api.postJson("/backend/event", { name: "e", data: 1 }, asAdmin));
      await receiver.waitFor(count + 1, PATIENCE_MS, "/hook");
      await sleep(200); // until it is recorded
      await first.stop();
      await clock.set(secondMs);
      const second = await start();
      await sleep(NOTICED_MS);
      await clock.set(0, NOTICED_MS);
      const list = await second.api.get("/backend/delivery", bearer(second.adminToken));
      await second.stop();
      const [, time = ""] = /"next_attempt_at":"([^"]+)"/.exec(list.text) ?? [];
      assert.ok(Date.parse(time) <= Date.now() + HOUR_MS, list.text);
    });
  }
});

test("a clock that is ahead at a start purges no valid token", { skip: isOnRqlite }, async () => {
  const purge = async ({ api, adminToken }: Awaited<ReturnType<typeof start>>) => {
    const path = "/backend/cronjob/gatepost.purge/run";
    // 409 while it is running because it was due.
    await until(async () =>
      (await api.postJson(path, undefined, bearer(adminToken))).status === 202
    );
    await until(async () => {
      const { text } = await api.get("/backend/cronjob", bearer(adminToken));
      return /"gatepost.purge"[^}]*"status":"waiting","last_run":"/.test(text);
    });
  };
  await clock.set(0);
  const env = { GATEPOST_BASE_URL: "http://127.0.0.1:1" }; // one issuer at any port
  const first = await start(env);
  const alive = await first.login(await first.createUser());
  const revoked = await first.login(await first.createUser());
  await expectStatus(200, first.api.postForm("/authorization/revoke", {}, bearer(revoked)));
  const body = { name: "n", scopes: ["consumer"], expires_in: 7_776_000 };
  const made = first.api.postJson("/consumer/token", body, bearer(alive));
  const { token } = readObject(await expectStatus(201, made));
  assert.ok(typeof token === "string");
  await purge(first);
  await first.stop();
  await clock.set(400 * DAY_MS);
  const second = await start(env);
  await purge(second);
  assert.equal(await second.isAlive(token), false);
  await clock.set(0, NOTICED_MS);
  assert.equal(await second.isAlive(token), true);
  assert.equal(await second.isAlive(alive), true);
  assert.equal(await second.isAlive(revoked), false);
  await second.stop();
});

test("time without a server does not disable a subscription", { skip: isOnRqlite }, async () => {
  const env = { GATEPOST_RESEND_DELAYS: "none" };
  receiver.react("/down", { kind: "answer", status: 500 });
  let location = "";
  for (const days of [0, 40]) {
    await clock.set(days * DAY_MS);
    const gatepost = await start(env);
    const asAdmin = bearer(gatepost.adminToken);
    const { api } = gatepost;
    if (!location) {
      const body = { event: "e", endpoint: `${receiver.url}/down` };
      const made = await expectStatus(201, api.postJson("/consumer/subscription", body, asAdmin));
      location = `/consumer/subscription/${readObject(made)["id"]}`;
    }
    const count = receiver.count("/down");
    const event = api.postJson("/backend/event", { name: "e", data: 1 }, asAdmin);
    const { id } = readObject(await expectStatus(202, event));
    await receiver.waitFor(count + 1, PATIENCE_MS, "/down");
    const ofEvent = () => api.get(`/backend/delivery?event=${id}`, asAdmin);
    await until(async () => (await ofEvent()).text.includes('"status":"failed"'));
    const { text } = await api.get(location, asAdmin);
    assert.match(text, /"status":"active".*"failing_since":/);
    await gatepost.stop();
  }
});
