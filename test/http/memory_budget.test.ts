import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryBudget } from "../../src/http/memory_budget.ts";

/** A budget of 100 bytes and the names of those that were evicted, in order. */
function openBudget() {
  const budget = createMemoryBudget(100);
  const givenUp: string[] = [];
  const reserve = (name: string) => budget.reserve(() => void givenUp.push(name));
  /** How many bytes more there is room for; past that somebody is evicted. */
  const room = (): number => {
    const before = givenUp.length;
    const probe = reserve("probe");
    let bytes = 0;
    for (; givenUp.length === before; bytes++) probe.add(1);
    givenUp.length = before;
    return bytes - 1;
  };
  return { room, givenUp, reserve };
}

test("what fits is kept", () => {
  const { givenUp, reserve, room } = openBudget();
  reserve("a").add(60);
  reserve("b").add(40);
  assert.deepEqual(givenUp, []);
  assert.equal(room(), 0);
});

test("past the budget what has held longest is evicted, and no more than that", () => {
  const { givenUp, reserve, room } = openBudget();
  const [later, first, second] = [reserve("later"), reserve("first"), reserve("second")];
  first.add(30);
  second.add(30);
  later.add(30); // was opened before, and began to hold last
  second.add(30);
  assert.deepEqual(givenUp, ["first"]);
  assert.equal(room(), 10);
});

test("who alone holds too much is evicted itself", () => {
  const { givenUp, reserve, room } = openBudget();
  reserve("a").add(101);
  assert.deepEqual(givenUp, ["a"]);
  assert.equal(room(), 100);
});

test("what is kept counts, and is not evicted", () => {
  const { givenUp, reserve, room } = openBudget();
  const kept = reserve("kept");
  kept.add(80);
  kept.pin();
  reserve("new").add(30);
  assert.deepEqual(givenUp, ["new"]);
  assert.equal(room(), 20);
  kept.release();
  reserve("newer").add(30);
  assert.deepEqual(givenUp, ["new"]);
});

test("a release gives back once, however often it is called", () => {
  const { reserve, room } = openBudget();
  const holding = reserve("a");
  holding.add(50);
  reserve("b").add(20);
  holding.release();
  holding.release();
  assert.equal(room(), 80);
});

test("who holds nothing is not evicted", () => {
  const { givenUp, reserve } = openBudget();
  reserve("idle");
  reserve("a").add(90);
  reserve("b").add(90);
  assert.deepEqual(givenUp, ["a"]);
});
