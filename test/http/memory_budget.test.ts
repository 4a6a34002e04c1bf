import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryBudget } from "../../src/http/memory_budget.ts";

/** A budget of 100 bytes and the names of those that were given up, in order. */
function openBudget() {
  const budget = createMemoryBudget(100);
  const givenUp: string[] = [];
  return { budget, givenUp, hold: (name: string) => budget.hold(() => void givenUp.push(name)) };
}

test("what fits is kept", () => {
  const { budget, givenUp, hold } = openBudget();
  hold("a").add(60);
  hold("b").add(40);
  assert.equal(budget.heldBytes(), 100);
  assert.deepEqual(givenUp, []);
});

test("past the budget what has held longest is given up, and no more than that", () => {
  const { budget, givenUp, hold } = openBudget();
  const [later, first, second] = [hold("later"), hold("first"), hold("second")];
  first.add(30);
  second.add(30);
  later.add(30); // was opened before, and began to hold last
  second.add(30);
  assert.deepEqual(givenUp, ["first"]);
  assert.equal(budget.heldBytes(), 90);
});

test("who alone holds too much is given up itself", () => {
  const { budget, givenUp, hold } = openBudget();
  hold("a").add(101);
  assert.deepEqual(givenUp, ["a"]);
  assert.equal(budget.heldBytes(), 0);
});

test("what is kept counts, and is not given up", () => {
  const { budget, givenUp, hold } = openBudget();
  const kept = hold("kept");
  kept.add(80);
  kept.keep();
  hold("new").add(30);
  assert.deepEqual(givenUp, ["new"]);
  assert.equal(budget.heldBytes(), 80);
  kept.release();
  hold("newer").add(30);
  assert.deepEqual(givenUp, ["new"]);
});

test("a release gives back once, however often it is called", () => {
  const { budget, hold } = openBudget();
  const holding = hold("a");
  holding.add(50);
  hold("b").add(20);
  holding.release();
  holding.release();
  assert.equal(budget.heldBytes(), 20);
});

test("who holds nothing is not given up", () => {
  const { givenUp, hold } = openBudget();
  hold("idle");
  hold("a").add(90);
  hold("b").add(90);
  assert.deepEqual(givenUp, ["a"]);
});
