import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createNodeChoice, createWaitLimit } from "../../src/database/rqlite_nodes.ts";

test("while no leader is known the nodes are asked in turn", () => {
  const choice = createNodeChoice(["a", "b", "c"]);
  const asked = Array.from({ length: 6 }, () => choice.next());
  assert.deepEqual(asked.slice(0, 3).toSorted(), ["a", "b", "c"]);
  assert.deepEqual(asked.slice(3), asked.slice(0, 3));
});

test("the node that responded is asked until it fails, even if others fail", () => {
  const choice = createNodeChoice(["a", "b", "c"]);
  choice.answered("b");
  choice.failed("a");
  assert.deepEqual([choice.next(), choice.next()], ["b", "b"]);
  choice.failed("b");
  assert.deepEqual([choice.next(), choice.next(), choice.next()].toSorted(), ["a", "b", "c"]);
});

test("a node that was silent is asked last for five seconds", (t) => {
  const pass = stopClock(t);
  const choice = createNodeChoice(["a", "b", "c"]);
  choice.silenced("b");
  const ask = () => new Set(Array.from({ length: 6 }, () => choice.next()));
  assert.deepEqual(ask(), new Set(["a", "c"]));
  pass(4_999);
  assert.deepEqual(ask(), new Set(["a", "c"]));
  pass(1);
  assert.deepEqual(ask(), new Set(["a", "b", "c"]));
});

test("if all nodes but one were silent, that one is asked each time", (t) => {
  stopClock(t);
  for (const lively of ["a", "b", "c"]) {
    const choice = createNodeChoice(["a", "b", "c"]);
    for (const node of ["a", "b", "c"]) if (node !== lively) choice.silenced(node);
    assert.deepEqual([1, 2, 3].map(() => choice.next()), [lively, lively, lively]);
  }
});

test("if all nodes were silent, they are still asked in turn", (t) => {
  stopClock(t);
  const choice = createNodeChoice(["a", "b"]);
  for (const node of ["a", "b"]) choice.silenced(node);
  assert.deepEqual([choice.next(), choice.next()].toSorted(), ["a", "b"]);
});

test("follow() accepts a named leader unless it was silent within the last second", (t) => {
  const pass = stopClock(t);
  const choice = createNodeChoice(["a", "b"]);
  assert.equal(choice.follow("not listed"), true);
  assert.equal(choice.next(), "not listed");
  choice.silenced("b");
  pass(999);
  assert.equal(choice.follow("b"), false);
  assert.equal(choice.next(), "not listed");
  pass(1);
  assert.equal(choice.follow("b"), true);
  assert.equal(choice.next(), "b");
});

test("changes() rises when another node responds, a node fails or a connection ends", () => {
  const choice = createNodeChoice(["a", "b"]);
  const hasChanged = (act: () => void) => {
    const before = choice.changes();
    act();
    return choice.changes() > before;
  };
  assert.equal(hasChanged(() => choice.answered("a")), true);
  assert.equal(hasChanged(() => choice.answered("a")), false);
  assert.equal(hasChanged(() => choice.answered("b")), true);
  assert.equal(hasChanged(() => choice.failed("b")), true);
  assert.equal(hasChanged(() => choice.answered("b")), true);
  assert.equal(hasChanged(() => choice.disconnected()), true);
});

test("while no node responds requests wait five seconds, later ones half a second", async (t) => {
  const pass = stopClock(t);
  const waitLimit = createWaitLimit();
  assert.equal(waitLimit.untilMs(performance.now()), Infinity);
  const startedMs = performance.now();
  await waitLimit.attempt(failAfter(pass, 1_000));
  assert.equal(waitLimit.untilMs(startedMs), startedMs + 5_000);
  await waitLimit.attempt(failAfter(pass, 1_000));
  assert.equal(waitLimit.untilMs(performance.now()), startedMs + 5_000, "after the first failure");
  pass(2_900);
  assert.equal(waitLimit.untilMs(performance.now()), performance.now() + 500);
  await waitLimit.attempt(async () => ({ kind: "redirect" }));
  assert.notEqual(waitLimit.untilMs(0), Infinity);
  await waitLimit.attempt(async () => ({ kind: "results" }));
  assert.equal(waitLimit.untilMs(performance.now()), Infinity);
});

test("after a failure one attempt at a time may use all its time", async (t) => {
  const pass = stopClock(t);
  const waitLimit = createWaitLimit();
  const probes: boolean[] = [];
  const attempt = () => {
    const waiting = Promise.withResolvers<void>();
    const ended = waitLimit.attempt(async (isProbe) => {
      probes.push(isProbe);
      await waiting.promise;
      return { kind: "failed" };
    });
    return async () => {
      waiting.resolve();
      await ended;
    };
  };
  await attempt()();
  pass(1_000);
  const [first, second] = [attempt(), attempt()];
  await second();
  await attempt()(); // while the first is in flight
  await first();
  await attempt()();
  assert.deepEqual(probes, [false, true, false, false, true]);
});

function failAfter(pass: (ms: number) => void, ms: number) {
  return async () => {
    pass(ms);
    return { kind: "failed" };
  };
}

/** Stops the elapsed time; the returned function advances it. */
function stopClock(t: TestContext): (ms: number) => void {
  let elapsedMs = 1_000_000;
  t.mock.method(performance, "now", () => elapsedMs);
  return (ms) => void (elapsedMs += ms);
}
