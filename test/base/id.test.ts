import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ID_LENGTH, idBound, idTimeMs, isId, newId } from "../../src/base/id.ts";

// Ids never go back in time within a process, so each test takes a later one than those before.
const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 1);

test("newId() is the kind's letter and base 36 in lower case, always of one length", () => {
  for (const kind of ["u", "a", "g", "s", "e", "k"]) {
    const id = newId(kind, START_MS);
    assert.match(id, /^[a-z][0-9a-z]+$/);
    assert.equal(id[0], kind);
    assert.equal(id.length, ID_LENGTH);
  }
});

test("newId() makes 100,000 different ids in ascending order", () => {
  const nowMs = START_MS + MINUTE_MS;
  const ids = Array.from({ length: 100_000 }, (_, at) => newId("g", nowMs + Math.floor(at / 999)));
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(ids, ids.toSorted());
});

test("newId() makes ids of one millisecond differ in their random part", () => {
  // The random part is the last twelve characters, which hold 62 bits.
  const parts = new Set(
    Array.from({ length: 20_000 }, () => newId("g", START_MS + 2 * MINUTE_MS).slice(-12)),
  );
  assert.equal(parts.size, 20_000);
});

test("newId() keeps the order within one millisecond, even past the counter's end", () => {
  const nowMs = START_MS + 3 * MINUTE_MS;
  const ids = Array.from({ length: 36 ** 3 + 10 }, () => newId("e", nowMs));
  assert.deepEqual(ids, ids.toSorted());
  assert.equal(idTimeMs(ids[0] ?? ""), nowMs);
  assert.equal(idTimeMs(ids.at(-1) ?? ""), nowMs + 1);
});

test("newId() keeps the order when the clock steps back", () => {
  const nowMs = START_MS + 4 * MINUTE_MS;
  const before = newId("e", nowMs);
  const after = [newId("e", nowMs - 30_000), newId("e", nowMs - 29_999), newId("e", 0)];
  assert.deepEqual([before, ...after], [before, ...after].toSorted());
  for (const id of after) assert.equal(idTimeMs(id), nowMs);
  assert.equal(idTimeMs(newId("e", nowMs + 1)), nowMs + 1);
});

test("idTimeMs() returns the time that newId() was given", () => {
  for (const timeMs of [START_MS + 5 * MINUTE_MS, Date.UTC(2100, 5, 1), Date.UTC(5000, 0, 1)]) {
    assert.equal(idTimeMs(newId("u", timeMs)), timeMs);
  }
});

test("idBound() sorts after all ids that are older than a time and before the others", () => {
  const timeMs = Date.UTC(5001, 0, 1);
  const before = newId("g", timeMs - 1);
  const then = newId("g", timeMs);
  assert.ok(before < idBound("g", timeMs));
  assert.ok(idBound("g", timeMs) < then);
  assert.ok(idBound("g", 0) < before);
  assert.equal(idBound("g", -5), idBound("g", 0));
});

describe("isId()", () => {
  const id = newId("g", START_MS);
  const table: [what: string, text: string, isGood: boolean][] = [
    ["accepts an id of its kind", id, true],
    ["refuses an id of another kind", `u${id.slice(1)}`, false],
    ["refuses an id that is too short", id.slice(0, -1), false],
    ["refuses an id that is too long", `${id}0`, false],
    ["refuses upper case", id.slice(0, -1) + "A", false],
    ["refuses other characters", id.slice(0, -1) + "-", false],
    ["refuses a line feed", id.slice(0, -1) + "\n", false],
    ["refuses digits that are not ASCII", id.slice(0, -1) + "\u0661", false],
    ["refuses an empty text", "", false],
  ];
  for (const [what, text, isGood] of table) {
    test(what, () => assert.equal(isId("g", text), isGood));
  }
});
