import assert from "node:assert/strict";
import { test } from "node:test";
import { GrowingBytes } from "../../src/http/growing_bytes.ts";

test("pieces of any size are put together as they came", () => {
  const pieces = Array.from({ length: 300 }, (_, n) => Buffer.alloc(n * 7, n));
  const bytes = new GrowingBytes();
  for (const piece of pieces) bytes.append(piece);
  assert.deepEqual(bytes.toBuffer(), Buffer.concat(pieces));
  assert.equal(bytes.length, Buffer.concat(pieces).length);
});

test("its room is told as it grows, never past the largest", () => {
  const bytes = new GrowingBytes();
  let room = 0;
  for (let count = 1; count <= 1000; count++) {
    room += bytes.append(Buffer.alloc(10), 10_000);
    assert.ok(room >= bytes.length && room <= 10_000, `${room} for ${bytes.length}`);
  }
  assert.equal(bytes.length, 10_000);
});

test("what was outgrown or dropped is free at once", () => {
  const piece = Buffer.alloc(64 * 1024);
  const startBytes = process.memoryUsage().arrayBuffers;
  for (let round = 0; round < 50; round++) {
    const bytes = new GrowingBytes();
    for (let count = 0; count < 16; count++) bytes.append(piece);
    bytes.clear();
    assert.equal(bytes.length, 0);
  }
  const grownBytes = process.memoryUsage().arrayBuffers - startBytes;
  assert.ok(grownBytes < 2 ** 20, `${grownBytes} bytes are still held`);
});
