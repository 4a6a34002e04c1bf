import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DEFAULT_LIMITS, limitsFor } from "../../src/http/limits.ts";

const MIB = 1024 * 1024;
const HANDBOOK = readFileSync(new URL("../../src/cli/OPERATIONS.md", import.meta.url), "utf8");

test("the handbook states the limits of the code", () => {
  const limits = DEFAULT_LIMITS;
  const number = (value: number) => value.toLocaleString("en");
  const { maxPipelinedBytes, maxHeldBodyBytes, maxParsedBytes, maxHeldResponseBytes } = limits;
  const sharedMiB =
    (maxPipelinedBytes + maxHeldBodyBytes + maxParsedBytes + maxHeldResponseBytes) / MIB;
  const allMiB = sharedMiB + limits.maxConnections * 96 / 1024;
  for (const said of [
    `| ${number(limits.maxConnections)}; ${number(limits.maxConnectionsPerAddress)} of one address`,
    "sent ahead on one connection; on all | " +
      `${limits.maxPipelined}; ${maxPipelinedBytes / MIB} MiB |`,
    `clients have not read | ${maxHeldBodyBytes / MIB} MiB each`,
    `| ${maxParsedBytes / MIB} MiB (16 times the largest body`,
    `| ${limits.headersTimeoutMs / 1000} s, ${limits.requestTimeoutMs / 1000} s (longer where`,
    `reads nothing of its response | ${limits.stallTimeoutMs / 1000} s to a minute |`,
    `waits for another request | ${limits.idleTimeoutMs / 1000} s |`,
    `96 KiB a connection and ${sharedMiB} MiB, about ${Math.round(allMiB / 10) * 10} MiB in all`,
  ]) assert.ok(HANDBOOK.includes(said), said);
  assert.equal(maxHeldResponseBytes, maxHeldBodyBytes);
});

test("limitsFor() keeps the defaults for bodies of the usual size", () => {
  assert.deepEqual(limitsFor(MIB), DEFAULT_LIMITS);
});

test("limitsFor() gives large bodies memory for two of them, and more time to arrive", () => {
  const { maxHeldBodyBytes, maxParsedBytes, requestTimeoutMs, ...others } = limitsFor(256 * MIB);
  assert.equal(maxHeldBodyBytes, 512 * MIB);
  assert.equal(maxParsedBytes, 4096 * MIB);
  assert.equal(requestTimeoutMs, 256 * MIB / 64); // 64 bytes in a millisecond
  const { maxHeldBodyBytes: _, maxParsedBytes: __, requestTimeoutMs: ___, ...defaults } =
    DEFAULT_LIMITS;
  assert.deepEqual(others, defaults);
});
