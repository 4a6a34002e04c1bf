import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryBudget } from "../../src/http/memory_budget.ts";

/** A budget of 100 bytes and the names of those that were evicted, in order. */
function openBudget() {
  const budget = createMemoryBudget(100);
  const evicted: string[] = [];
  const reserve = (name: string) => budget.reserve(() => void evicted.push(name));
  /** How many more bytes fit; past that a reservation is evicted. */
  const freeBytes = (): number => {
    const before = evicted.length;
    const probe = reserve("probe");
    let bytes = 0;
    for (; evicted.length === before; bytes++) probe.add(1);
    evicted.length = before;
    return bytes - 1;
  };
  return { freeBytes, evicted, reserve };
}

test("reservations that fit are kept", () => {
  const { evicted, reserve, freeBytes } = openBudget();
  reserve("a").add(60);
  reserve("b").add(40);
  assert.deepEqual(evicted, []);
  assert.equal(freeBytes(), 0);
});

test("past the budget the oldest reservation is evicted, and no more than that", () => {
  const { evicted, reserve, freeBytes } = openBudget();
  const [later, first, second] = [reserve("later"), reserve("first"), reserve("second")];
  first.add(30);
  second.add(30);
  later.add(30); // was made before, and got its first bytes last
  second.add(30);
  assert.deepEqual(evicted, ["first"]);
  assert.equal(freeBytes(), 10);
});

test("a single reservation past the budget is evicted itself", () => {
  const { evicted, reserve, freeBytes } = openBudget();
  reserve("a").add(101);
  assert.deepEqual(evicted, ["a"]);
  assert.equal(freeBytes(), 100);
});

test("a pinned reservation counts, and is not evicted", () => {
  const { evicted, reserve, freeBytes } = openBudget();
  const pinned = reserve("pinned");
  pinned.add(80);
  pinned.pin();
  reserve("new").add(30);
  assert.deepEqual(evicted, ["new"]);
  assert.equal(freeBytes(), 20);
  pinned.release();
  reserve("newer").add(30);
  assert.deepEqual(evicted, ["new"]);
});

test("release() frees the bytes once, however often it is called", () => {
  const { reserve, freeBytes } = openBudget();
  const reservation = reserve("a");
  reservation.add(50);
  reserve("b").add(20);
  reservation.release();
  reservation.release();
  assert.equal(freeBytes(), 80);
});

test("a reservation without bytes is not evicted", () => {
  const { evicted, reserve } = openBudget();
  reserve("idle");
  reserve("a").add(90);
  reserve("b").add(90);
  assert.deepEqual(evicted, ["a"]);
});
