import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createRounds } from "../../src/delivery/rounds.ts";

describe("createRounds()", () => {
  // Each of these is one step of promises later: one of them is between a round and its being told.
  for (const steps of [0, 1, 2, 3, 4]) {
    test(`loses no wake that comes ${steps} promises after a round`, async () => {
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

  test("begins no round while it may not, and one at the first wake after that", async () => {
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
});
