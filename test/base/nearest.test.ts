import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "../../src/base/nearest.ts";

const WORDS = ["add", "list", "set", "disable", "delete", "rotate-secret"];

const CASES: readonly (readonly [typed: string, meant: string | undefined])[] = [
  ["ad", "add"],
  ["addd", "add"],
  ["list-all", "list"],
  ["dad", "add"],
  ["lsit", "list"],
  ["LIST", "list"],
  ["dis", "disable"],
  ["disabel", "disable"],
  ["del", "delete"],
  ["rotate", "rotate-secret"],
  ["rotate_secret", "rotate-secret"],
  ["sat", "set"],
  ["st", "set"],
  ["frobnicate", undefined],
  ["", undefined],
  ["x", undefined],
  ["a".repeat(100_000), undefined],
];

for (const [typed, meant] of CASES) {
  test(`nearest() takes ${JSON.stringify(typed.slice(0, 20))} for ${meant ?? "no word"}`, () => {
    assert.equal(nearest(typed, WORDS), meant);
  });
}
