import assert from "node:assert/strict";
import { test } from "node:test";
import { GrowingBytes } from "../../src/http/growing_bytes.ts";

test("pieces of any size are joined in order", () => {
  const pieces = Array.from({ length: 300 }, (_, n) => Buffer.alloc(n * 7, n));
  const bytes = new GrowingBytes();
  for (const piece of pieces) bytes.append(piece);
  assert.deepEqual(bytes.toBuffer(), Buffer.concat(pieces));
  assert.equal(bytes.length, Buffer.concat(pieces).length);
});

test("append() returns how much the buffer grows, never past maxBytes", () => {
  const bytes = new GrowingBytes();
  let size = 0;
  for (let count = 1; count <= 1000; count++) {
    size += bytes.append(Buffer.alloc(10), 10_000);
    assert.ok(size >= bytes.length && size <= 10_000, `${size} for ${bytes.length}`);
  }
  assert.equal(bytes.length, 10_000);
});

test("outgrown and cleared buffers are freed at once", () => {
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
