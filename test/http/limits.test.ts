import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_LIMITS, limitsFor } from "../../src/http/limits.ts";

const MIB = 1024 * 1024;

test("limitsFor() keeps the defaults for bodies of the usual size", () => {
  assert.deepEqual(limitsFor(MIB), DEFAULT_LIMITS);
});

test("limitsFor() gives large bodies memory for two of them, and time to arrive", () => {
  const { maxHeldBodyBytes, maxParsedBytes, requestTimeoutMs, ...others } = limitsFor(256 * MIB);
  assert.equal(maxHeldBodyBytes, 512 * MIB);
  assert.equal(maxParsedBytes, 4096 * MIB);
  assert.equal(requestTimeoutMs, 256 * MIB / 64); // 64 bytes in a millisecond
  const { maxHeldBodyBytes: _, maxParsedBytes: __, requestTimeoutMs: ___, ...defaults } =
    DEFAULT_LIMITS;
  assert.deepEqual(others, defaults);
});
