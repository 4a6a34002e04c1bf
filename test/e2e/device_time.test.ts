import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { type Clock, createClock } from "../helpers/clock.ts";
import {
  assertCodePage,
  decide,
  type Device,
  DEVICE_GRANT,
  newDevice,
  openVerify,
  poll,
  pollFor,
  typeCode,
} from "../helpers/device.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { readTokens } from "../helpers/responses.ts";

const MINUTES = 60_000;

let clock: Clock;
let folder: string;
let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
before(async () => {
  clock = await createClock();
  folder = await createDataFolder();
  await start();
  user = await gatepost.createUser();
  app = await gatepost.createApp({ grants: [DEVICE_GRANT, "refresh_token"] });
});
after(async () => {
  await gatepost.stop();
  await rm(folder, { recursive: true });
  await clock.remove();
});
beforeEach(() => clock.set(0));

async function start(): Promise<void> {
  const env = {
    ...clock.env,
    // Without a fixed base URL each start has a new port, and so another issuer.
    GATEPOST_BASE_URL: "http://gatepost.test",
  };
  gatepost = await startGatepost({ folder, env });
}

test("the longer interval after slow_down stays for later polls", async () => {
  const device = await newDevice(gatepost, app);
  const polls: unknown[] = [];
  for (const seconds of [0, 1, 8, 25, 41, 62]) { // 10 s, then 15 s
    await clock.set(seconds * 1_000);
    polls.push(await pollFor(gatepost, app, device));
  }
  const [pending, early] = ["authorization_pending", "slow_down"];
  assert.deepEqual(polls, [pending, early, early, pending, pending, pending]);
  await clock.set(76_000 - 6_000);
  assert.equal(await pollFor(gatepost, app, device), early);
});

test("a device that polls every five seconds never gets slow_down", async () => {
  const device = await newDevice(gatepost, app);
  for (let seconds = 0; seconds < 40; seconds += 5) {
    await clock.set(seconds * 1_000);
    assert.equal(await pollFor(gatepost, app, device), "authorization_pending");
  }
});

test("a code expires after ten minutes, for its user and for its device", async () => {
  const [waiting, open, allowed] = [
    await newDevice(gatepost, app),
    await newDevice(gatepost, app),
    await newDevice(gatepost, app),
  ] as const;
  const { browser, page } = await openVerify(gatepost, user);
  const consent = await typeCode(browser, page, open.user_code);
  await decide(gatepost, user, allowed);
  await clock.set(10 * MINUTES);
  for (const response of [
    await browser.submit(page, { user_code: waiting.user_code }),
    await browser.submit(consent, {}, "allow"),
  ]) {
    assertCodePage(response, 400);
    assert.match(response.text, /has expired/);
  }
  for (const device of [waiting, open, allowed]) {
    assert.equal(await pollFor(gatepost, app, device), "expired_token");
  }
});

test("acknowledged codes, decisions and exchanges survive a kill -9", async () => {
  const crash = async () => {
    await gatepost.server.kill();
    await start();
  };
  const devices: Device[] = [];
  for (let count = 0; count < 3; count++) devices.push(await newDevice(gatepost, app));
  const [allowed, denied, late] = devices;
  assert.ok(allowed && denied && late);
  await decide(gatepost, user, allowed);
  await decide(gatepost, user, denied, "deny");
  await crash();
  const tokens = readTokens(await poll(gatepost, app, allowed));
  assert.equal(await pollFor(gatepost, app, denied), "access_denied");
  await decide(gatepost, user, late);
  await crash();
  readTokens(await gatepost.refresh(app, tokens.refresh_token));
  readTokens(await poll(gatepost, app, late));
  await crash();
  assert.equal(await pollFor(gatepost, app, allowed), "invalid_grant");
});
