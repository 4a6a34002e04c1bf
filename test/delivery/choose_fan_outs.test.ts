import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseFanOuts } from "../../src/delivery/choose_fan_outs.ts";

const make = (kind: string, count: number, fannedOut: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `${kind}${index}`, fannedOut }));

const chosenOf = (...events: readonly { name: string; fannedOut: number }[]) =>
  chooseFanOuts(events).chosen.map(({ name }) => name);

test("an event that has not begun is chosen behind forty that are under way", () => {
  const chosen = chosenOf(...make("large", 40, 9), ...make("small", 1, 0));
  assert.ok(chosen.includes("small0"));
  assert.equal(chosen.length, 32);
});

test("an event that is under way is chosen behind forty older ones", () => {
  assert.ok(chosenOf(...make("large", 40, 9), ...make("medium", 1, 9)).includes("medium0"));
});

test("the newest event is chosen behind hundreds that have not begun either", () => {
  const chosen = chosenOf(...make("other", 300, 0), ...make("small", 1, 0));
  assert.ok(chosen.includes("small0") && chosen.includes("other0"));
});

test("events under way go on, however many others have not begun", () => {
  const chosen = chosenOf(...make("large", 40, 9), ...make("other", 300, 0));
  assert.equal(chosen.filter((name) => name.startsWith("large")).length, 16);
  assert.equal(new Set(chosen).size, 32);
});

for (const [underWay, fresh] of [[1, 0], [0, 1], [3, 2], [20, 20], [40, 40], [0, 0]] as const) {
  test(`a round is bounded with ${underWay} events under way and ${fresh} not begun`, () => {
    const { chosen, limit } = chooseFanOuts([...make("a", underWay, 9), ...make("b", fresh, 0)]);
    assert.equal(chosen.length, Math.min(32, underWay + fresh));
    assert.ok(chosen.length * limit <= 2000 && limit <= 500 && limit >= 62);
  });
}
