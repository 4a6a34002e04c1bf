import assert from "node:assert/strict";
import { test } from "node:test";
import { createCatchUp } from "../../src/app/catch_up.ts";
import type { HttpRequest, HttpResponse } from "../../src/base/http_message.ts";

/** A process whose clock and database the test controls. */
function createProcess() {
  let [nowMs, wallMs] = [0, 0];
  const looks: (() => void)[] = [];
  const look = () => new Promise<void>((resolve) => looks.push(resolve));
  const { beat, before } = createCatchUp(look, () => nowMs, () => wallMs);
  let handled = 0;
  const handle = before(() => {
    handled++;
    return Promise.resolve({} as HttpResponse);
  });
  return {
    beat,
    looks,
    passTime(ms: number) {
      nowMs += ms;
      wallMs += ms;
    },
    setClock: (ms: number) => wallMs += ms,
    request: () => handle({} as HttpRequest),
    handled: () => handled,
  };
}

test("requests do not wait while the process runs without a pause", () => {
  const { passTime, beat, request, handled, looks } = createProcess();
  for (let round = 0; round < 10; round++) {
    passTime(500);
    beat();
  }
  void request();
  assert.deepEqual([handled(), looks.length], [1, 0]);
});

test("after a pause of the process all requests wait for one look at the database", async () => {
  for (const isTimerFirst of [true, false]) {
    const { passTime, beat, request, handled, looks } = createProcess();
    passTime(601);
    if (isTimerFirst) beat();
    const requests = [request(), request()];
    assert.deepEqual([handled(), looks.length], [0, 1]);
    looks[0]?.();
    await Promise.all(requests);
    void request();
    assert.deepEqual([handled(), looks.length], [3, 1]);
  }
});

test("a suspended machine counts as a pause, a clock that is set back does not", () => {
  const { setClock, request, looks } = createProcess();
  void request();
  setClock(-60_000);
  void request();
  assert.equal(looks.length, 0);
  setClock(601);
  void request();
  assert.equal(looks.length, 1);
});

test("after another pause requests wait for a look that began later", async () => {
  const { passTime, request, handled, looks } = createProcess();
  passTime(601);
  const first = request();
  passTime(601);
  const second = request();
  looks[0]?.();
  await first;
  assert.equal(handled(), 1);
  looks[1]?.();
  await second;
  assert.equal(handled(), 2);
});

test("requests wait for only a second where the database does not respond", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { passTime, request, handled } = createProcess();
  passTime(601);
  const waiting = request();
  t.mock.timers.tick(999);
  await new Promise(setImmediate);
  assert.equal(handled(), 0);
  t.mock.timers.tick(1);
  await waiting;
  void request();
  assert.equal(handled(), 2);
});
