import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createNodeChoice, createWaitLimit } from "../../src/database/rqlite_nodes.ts";

test("while nobody is known to lead the nodes are asked in turn", () => {
  const choice = createNodeChoice(["a", "b", "c"]);
  const asked = Array.from({ length: 6 }, () => choice.next());
  assert.deepEqual(asked.slice(0, 3).toSorted(), ["a", "b", "c"]);
  assert.deepEqual(asked.slice(3), asked.slice(0, 3));
});

test("who has answered leads until it fails, whatever becomes of others", () => {
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

test("where all but one were silent that one is asked, whoever's turn it is", (t) => {
  stopClock(t);
  for (const lively of ["a", "b", "c"]) {
    const choice = createNodeChoice(["a", "b", "c"]);
    for (const node of ["a", "b", "c"]) if (node !== lively) choice.silenced(node);
    assert.deepEqual([1, 2, 3].map(() => choice.next()), [lively, lively, lively]);
  }
});

test("where all were silent they are asked in turn all the same", (t) => {
  stopClock(t);
  const choice = createNodeChoice(["a", "b"]);
  for (const node of ["a", "b"]) choice.silenced(node);
  assert.deepEqual([choice.next(), choice.next()].toSorted(), ["a", "b"]);
});

test("one that is said to lead is asked, unless it was silent within a second", (t) => {
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

test("the leader may have changed when another answers, one fails or a connection ends", () => {
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

test("where nobody answers all wait five seconds, who comes later half of one", async (t) => {
  const pass = stopClock(t);
  const waitLimit = createWaitLimit();
  assert.equal(waitLimit.untilMs(performance.now()), Infinity);
  const startedMs = performance.now();
  await waitLimit.attempt(failAfter(pass, 1_000));
  assert.equal(waitLimit.untilMs(startedMs), startedMs + 5_000);
  await waitLimit.attempt(failAfter(pass, 1_000));
  assert.equal(waitLimit.untilMs(performance.now()), startedMs + 5_000, "since the first of them");
  pass(2_900);
  assert.equal(waitLimit.untilMs(performance.now()), performance.now() + 500);
  await waitLimit.attempt(async () => ({ kind: "redirect" }));
  assert.notEqual(waitLimit.untilMs(0), Infinity);
  await waitLimit.attempt(async () => ({ kind: "results" }));
  assert.equal(waitLimit.untilMs(performance.now()), Infinity);
});

test("once nobody has answered one attempt at a time has all its time", async (t) => {
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
  await attempt()(); // while the first goes on
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

/** Has elapsed time stand still but for what the function is given. */
function stopClock(t: TestContext): (ms: number) => void {
  let elapsedMs = 1_000_000;
  t.mock.method(performance, "now", () => elapsedMs);
  return (ms) => void (elapsedMs += ms);
}
