import assert from "node:assert/strict";
import { Problem } from "../../src/base/problem.ts";

/** The pointers of the 400 that `run` throws, whose errors all have a detail; [] if it returns. */
export function pointersOf(run: () => unknown): string[] {
  try {
    run();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    assert.deepEqual([error.status, error.code], [400, "invalid"]);
    assert.ok(error.errors.every(({ detail }) => detail !== ""));
    return error.errors.map(({ pointer }) => pointer);
  }
}
