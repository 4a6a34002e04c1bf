import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createRounds } from "../../src/delivery/rounds.ts";

describe("createRounds()", () => {
  // Each step is one microtask; one of these wakes comes between a round's end and its cleanup.
  for (const steps of [0, 1, 2, 3, 4]) {
    test(`loses no wake that comes ${steps} microtasks after a round`, async () => {
      let rounds = 0;
      const { wake } = createRounds(
        async () => {
          if (++rounds === 1) wakeAfter(steps);
          return false;
        },
        () => true,
      );
      const wakeAfter = (left: number) =>
        queueMicrotask(() => left === 0 ? wake() : wakeAfter(left - 1));
      wake();
      await sleep(50);
      assert.equal(rounds, 2);
    });
  }

  test("begins no round while mayRun() is false, but one at the first wake later", async () => {
    let rounds = 0;
    let mayRun = false;
    const { wake, idle } = createRounds(
      async () => {
        rounds++;
        return false;
      },
      () => mayRun,
    );
    wake();
    await idle();
    assert.equal(rounds, 0);
    mayRun = true;
    wake();
    await idle();
    assert.equal(rounds, 1);
  });

  test("rounds follow each other while there is more work and mayRun() is true", async () => {
    let rounds = 0;
    const { wake, idle } = createRounds(async () => ++rounds < 5, () => rounds < 9);
    wake();
    await idle();
    assert.equal(rounds, 5);
    const stopped = createRounds(async () => ++rounds > 0, () => rounds < 9);
    stopped.wake();
    await stopped.idle();
    assert.equal(rounds, 9);
  });

  test("wakeIn() wakes once, at the time that was set last", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let rounds = 0;
    const { wakeIn, idle } = createRounds(async () => ++rounds < 0, () => true);
    wakeIn(1_000);
    wakeIn(3_000);
    t.mock.timers.tick(2_999);
    await idle();
    assert.equal(rounds, 0);
    t.mock.timers.tick(1);
    await idle();
    assert.equal(rounds, 1);
  });

  test("wakeIn() with a negative time wakes at once, and Node does not warn", async (t) => {
    const warn = t.mock.method(process, "emitWarning");
    const woken = Promise.withResolvers<boolean>();
    const { wakeIn } = createRounds(async () => (woken.resolve(true), false), () => true);
    wakeIn(-2); // as for a pause that has ended already
    assert.ok(await Promise.race([woken.promise, sleep(1_000, false)]));
    assert.equal(warn.mock.callCount(), 0);
  });

  test("gather() begins one round for calls at about the same time, again and again", async () => {
    let rounds = 0;
    const { gather, idle } = createRounds(async () => ++rounds < 0, () => true);
    for (const expected of [1, 2]) {
      await Promise.all([gather(), gather()]);
      await idle();
      assert.equal(rounds, expected);
    }
  });
});
