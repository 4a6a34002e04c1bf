import assert from "node:assert/strict";
import { test } from "node:test";
import {
  APP,
  createInstantHasher,
  HERE,
  MINUTE_MS,
  openLogin,
  RIGHT,
  WRONG,
} from "./login_stage.ts";

test("a login is throttled after 10 failures of its account from one address", async (t) => {
  const { login, fail, checks } = await openLogin(t);
  await fail(10, "marta");
  const before = checks.count;
  assert.deepEqual(await login("marta", RIGHT), { kind: "throttled", retryAfterSeconds: 900 });
  assert.deepEqual(await login("marta", WRONG), { kind: "throttled", retryAfterSeconds: 900 });
  assert.equal(checks.count, before, "a throttled login costs no hash");
});

test("9 failures do not throttle an account, and a success clears them", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(9, "marta");
  assert.equal((await login("marta", RIGHT)).kind, "ok");
  await fail(9, "marta");
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

test("the right password of a disabled user clears no failures, just like a wrong one",
  async (t) => {
    const { login, fail, addDisabled } = await openLogin(t);
    await addDisabled("otto");
    await fail(9, "otto");
    assert.equal((await login("otto", RIGHT)).kind, "wrong");
    await login("nobody", WRONG); // stored after whatever the login above has written
    assert.equal((await login("otto", RIGHT)).kind, "throttled");
  });

test("an unknown name is throttled in the same way", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(10, "nobody");
  assert.deepEqual(await login("nobody", WRONG), { kind: "throttled", retryAfterSeconds: 900 });
});

test("failures of a name in another case count for the same account", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(5, "marta");
  await fail(5, "MARTA");
  assert.equal((await login("Marta", RIGHT)).kind, "throttled");
});

test("an account is throttled until its failures are 15 minutes old", async (t) => {
  const { login, fail, clock } = await openLogin(t);
  await fail(1, "marta");
  clock.nowMs += 5 * MINUTE_MS;
  await fail(9, "marta");
  assert.deepEqual(await login("marta", RIGHT), { kind: "throttled", retryAfterSeconds: 600 });
  clock.nowMs += 10 * MINUTE_MS - 1;
  assert.deepEqual(await login("marta", RIGHT), { kind: "throttled", retryAfterSeconds: 1 });
  clock.nowMs += 1;
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

test("a throttled login does not make the throttling longer", async (t) => {
  const { login, fail, clock } = await openLogin(t);
  await fail(10, "marta");
  for (let minute = 0; minute < 15; minute++) {
    assert.equal((await login("marta", WRONG)).kind, "throttled");
    clock.nowMs += MINUTE_MS;
  }
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

test("an account that is throttled at one address can log in from another", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(10, "marta", HERE);
  assert.equal((await login("marta", RIGHT, HERE)).kind, "throttled");
  assert.equal((await login("marta", RIGHT, "192.0.2.2")).kind, "ok");
});

test("failures from many addresses slow an account's logins down by 2 s at most", async (t) => {
  const { login, fail, sleeps } = await openLogin(t);
  for (let at = 0; at < 60; at++) await fail(1, "marta", `198.51.100.${at}`);
  sleeps.length = 0;
  assert.equal((await login("marta", RIGHT, "203.0.113.1")).kind, "ok");
  assert.deepEqual(sleeps, [2_000]);
});

test("the slow-down begins after 20 failures and grows, for that account alone", async (t) => {
  const { login, fail, sleeps } = await openLogin(t);
  for (let at = 0; at < 24; at++) await fail(1, "marta", `198.51.100.${at}`);
  assert.deepEqual(sleeps, [100, 200, 300]);
  sleeps.length = 0;
  await login("nobody", WRONG, "203.0.113.1");
  assert.deepEqual(sleeps, []);
});

test("the slow-down is the same for an unknown name", async (t) => {
  const { fail, sleeps } = await openLogin(t);
  for (let at = 0; at < 24; at++) await fail(1, "nobody", `198.51.100.${at}`);
  assert.deepEqual(sleeps, [100, 200, 300]);
});

test("the slow-down ends when the failures are 15 minutes old", async (t) => {
  const { login, fail, sleeps, clock } = await openLogin(t);
  for (let at = 0; at < 40; at++) await fail(1, "marta", `198.51.100.${at}`);
  clock.nowMs += 15 * MINUTE_MS;
  sleeps.length = 0;
  await login("marta", RIGHT);
  assert.deepEqual(sleeps, []);
});

test("a success is no failure, and does not clear those of another address", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(10, "marta", HERE);
  for (let at = 0; at < 30; at++) {
    assert.equal((await login("marta", RIGHT, "192.0.2.2")).kind, "ok");
  }
  assert.equal((await login("marta", RIGHT, HERE)).kind, "throttled");
});

test("50 failures from one address, of any accounts, throttle all logins there", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let at = 0; at < 49; at++) await fail(1, `name${at}`);
  assert.equal((await login("marta", RIGHT)).kind, "ok");
  await fail(1, "name49");
  assert.deepEqual(await login("marta", RIGHT), { kind: "throttled", retryAfterSeconds: 900 });
  assert.equal((await login("marta", RIGHT, "192.0.2.2")).kind, "ok");
});

test("a success with one account does not clear the address's failures at others", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let at = 0; at < 50; at++) {
    await fail(1, `name${at}`);
    if (at < 49) assert.equal((await login("marta", RIGHT)).kind, "ok");
  }
  assert.equal((await login("marta", RIGHT)).kind, "throttled");
});

test("an IPv6 /64 counts as one address, and the next /64 as another", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let at = 0; at < 10; at++) await fail(1, "marta", `2001:db8::${at + 1}`);
  assert.equal((await login("marta", RIGHT, "2001:db8::abcd:1")).kind, "throttled");
  assert.equal((await login("marta", RIGHT, "2001:db8:0:1::1")).kind, "ok");
});

for (const atOnce of [1, 4]) {
  test(`10 of 40 simultaneous guesses are checked, ${atOnce} at a time`, async (t) => {
    const { login, checks } = await openLogin(t, createInstantHasher(atOnce));
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, at) => login("marta", `guess number ${at}`)),
    );
    assert.equal(outcomes.filter(({ kind }) => kind === "wrong").length, 10);
    assert.equal(outcomes.filter(({ kind }) => kind === "throttled").length, 30);
    assert.equal(checks.count, 10);
  });
}

for (const atOnce of [1, 4]) {
  test(`50 guesses at many accounts are checked, and those under way: ${atOnce} at a time`,
    async (t) => {
      const { login, checks } = await openLogin(t, createInstantHasher(atOnce));
      const outcomes = await Promise.all(
        Array.from({ length: 80 }, (_, at) => login(`name${at}`, WRONG)),
      );
      assert.equal(outcomes.filter(({ kind }) => kind === "wrong").length, checks.count);
      assert.ok(checks.count >= 50 && checks.count < 50 + atOnce, String(checks.count));
      assert.equal((await login("marta", RIGHT)).kind, "throttled");
    });
}

test("simultaneous logins with the right password all succeed, and leave no failure", async (t) => {
  const { login, fail } = await openLogin(t, createInstantHasher(4));
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => login("marta", RIGHT)));
  assert.ok(outcomes.every(({ kind }) => kind === "ok"));
  await fail(9, "marta");
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

const IPV6 = (subnet: number, site = "2001:db8:1") => `${site}:${subnet.toString(16)}::1`;

test("one account is throttled after 40 failures in an IPv6 /56, or 160 in a /48", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let subnet = 0; subnet < 40; subnet++) await fail(1, "marta", IPV6(subnet));
  assert.equal((await login("marta", RIGHT, IPV6(0xff))).kind, "throttled");
  assert.equal((await login("other", WRONG, IPV6(0xff))).kind, "wrong");
  for (let subnet = 0x100; subnet < 0x400; subnet += 0x100) {
    for (let at = 0; at < 40; at++) await fail(1, "marta", IPV6(subnet + at));
  }
  assert.equal((await login("marta", RIGHT, IPV6(0xffff))).kind, "throttled");
  assert.equal((await login("marta", RIGHT, IPV6(0, "2001:db8:2"))).kind, "ok");
});

test("all accounts are throttled after 200 failures in an IPv6 /56, or 800 in a /48", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let subnet = 0; subnet < 0x400; subnet += 0x100) {
    for (let at = 0; at < 200; at++) await fail(1, `name${subnet + at}`, IPV6(subnet + at));
    assert.equal((await login("marta", RIGHT, IPV6(subnet + 0xff))).kind, "throttled");
  }
  assert.equal((await login("marta", RIGHT, IPV6(0xffff))).kind, "throttled");
  assert.equal((await login("marta", RIGHT, IPV6(0, "2001:db8:2"))).kind, "ok");
});

test("the limits hold for all processes on a database together, and after a restart", async (t) => {
  const { login, openOther } = await openLogin(t);
  const processes = [login, openOther(), openOther()];
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, at) => processes[at % 3]?.("marta", `guess number ${at}`)),
  );
  assert.equal(outcomes.filter((outcome) => outcome?.kind === "wrong").length, 10);
  assert.equal((await openOther()("marta", RIGHT)).kind, "throttled");
});

test("a success in one process clears the failures of another process", async (t) => {
  const { fail, openOther } = await openLogin(t);
  await fail(9, "marta");
  assert.equal((await openOther()("marta", RIGHT)).kind, "ok");
  await fail(9, "marta");
});

test("no account stays throttled when the clock is set back by an hour", async (t) => {
  const { login, fail, clock } = await openLogin(t);
  await fail(10, "marta");
  clock.nowMs -= 60 * MINUTE_MS;
  assert.equal((await login("marta", RIGHT)).kind, "ok");
});

test("an authenticated app is exempt from the limit of its address", async (t) => {
  const { login, fail } = await openLogin(t);
  for (let at = 0; at < 60; at++) await fail(1, `name${at}`, HERE, APP);
  assert.equal((await login("marta", RIGHT, HERE, APP)).kind, "ok");
  assert.equal((await login("marta", RIGHT)).kind, "ok", "its failures do not count for others");
  for (let at = 0; at < 50; at++) await fail(1, `name${at}`);
  assert.equal((await login("marta", RIGHT)).kind, "throttled");
  assert.equal((await login("marta", RIGHT, HERE, APP)).kind, "ok", "others' do not count for it");
});

test("an account's failures at one address count together, through an app or not", async (t) => {
  const { login, fail } = await openLogin(t);
  await fail(5, "marta", HERE, APP);
  await fail(5, "marta");
  assert.equal((await login("marta", RIGHT, HERE, APP)).kind, "throttled");
  assert.equal((await login("marta", RIGHT)).kind, "throttled");
  assert.equal((await login("marta", RIGHT, `${HERE}0`)).kind, "ok", "another address");
});

test("a success clears the account's failures at its address, through an app or not", async (t) => {
  const { login, fail } = await openLogin(t);
  const ways = [{}, APP, { findDevice: () => "d1" }];
  for (const failing of [{}, APP]) {
    for (const succeeding of ways) {
      await fail(9, "marta", HERE, failing);
      assert.equal((await login("marta", RIGHT, HERE, succeeding)).kind, "ok");
    }
  }
  await fail(9, "marta");
});

test("an app that is not authenticated is limited by its address", async (t) => {
  const { login, fail } = await openLogin(t);
  const unproven = { app: { id: "a1", isAuthenticated: false } };
  for (let at = 0; at < 50; at++) await fail(1, `name${at}`, HERE, unproven);
  assert.equal((await login("marta", RIGHT, HERE, unproven)).kind, "throttled");
});

test("a device that the user has logged in with is exempt from its address's limit", async (t) => {
  const { login, fail, user } = await openLogin(t);
  const known = { findDevice: (id: string) => id === user ? "d1" : undefined };
  for (let at = 0; at < 50; at++) await fail(1, `name${at}`);
  assert.equal((await login("marta", RIGHT)).kind, "throttled");
  assert.equal((await login("nobody", WRONG, HERE, known)).kind, "throttled");
  assert.equal((await login("marta", RIGHT, HERE, known)).kind, "ok");
});

test("a device is throttled after 10 failures of its own, from any addresses", async (t) => {
  const { login, fail } = await openLogin(t);
  const known = { findDevice: () => "d1" };
  for (let at = 0; at < 10; at++) await fail(1, "marta", `192.0.2.${at + 1}`, known);
  assert.equal((await login("marta", RIGHT, "198.51.100.1", known)).kind, "throttled");
  assert.equal((await login("marta", RIGHT)).kind, "ok");
  assert.equal((await login("marta", RIGHT, HERE, { findDevice: () => "d2" })).kind, "ok");
});

test("a success clears the user's failures with that device", async (t) => {
  const { login, fail } = await openLogin(t);
  const known = { findDevice: () => "d1" };
  await fail(9, "marta", HERE, known);
  assert.equal((await login("marta", RIGHT, HERE, known)).kind, "ok");
  await fail(9, "marta", HERE, known);
});
