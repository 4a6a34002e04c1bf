import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { createLineSink } from "../../src/base/line_sink.ts";

/** A stream that finishes no write while it stalls. */
function openStream() {
  const written: string[] = [];
  const waiting: (() => void)[] = [];
  const state = { stall: false };
  const stream = new Writable({
    decodeStrings: true,
    write(chunk, _, done) {
      const finish = () => {
        written.push(String(chunk));
        done();
      };
      if (state.stall) waiting.push(finish);
      else finish();
    },
  });
  return { stream, written, waiting, state };
}

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

test("a sink writes lines in their order and drops none", async () => {
  const { stream, written } = openStream();
  const sink = createLineSink(stream);
  sink.write("a\nb\n");
  sink.write("c\n");
  await nextTick();
  assert.deepEqual([written.join(""), sink.dropped()], ["a\nb\nc\n", 0]);
});

test("a sink whose stream stalls holds at most 4 MiB, and drops and counts the rest", async () => {
  const { stream, written, waiting, state } = openStream();
  const sink = createLineSink(stream);
  state.stall = true;
  const lines = `${"x".repeat(65_535)}\n`; // 64 of them are 4 MiB
  for (let count = 0; count < 100; count++) sink.write(lines);
  assert.equal(stream.writableLength, 4 * 1024 * 1024);
  assert.equal(sink.dropped(), 36);

  state.stall = false;
  waiting.forEach((finish) => finish());
  await nextTick();
  sink.write("after\n");
  await nextTick();
  assert.equal(written.length, 65);
  assert.equal(written.at(-1), "after\n");
  assert.equal(sink.dropped(), 36);
});

test("lines that the stream fails to write are counted, and the next begin on a new line", () => {
  const written: string[] = [];
  let error: Error | undefined = new Error("ENOSPC");
  const sink = createLineSink({
    writableLength: 0,
    on: () => {},
    write(text, done) {
      written.push(text);
      done(error);
    },
  });
  sink.write("a\nb\n");
  assert.equal(sink.dropped(), 2);
  error = undefined;
  sink.write("c\n");
  sink.write("d\n");
  assert.deepEqual(written, ["a\nb\n", "\nc\n", "d\n"]);
  assert.equal(sink.dropped(), 2);
});

test("the limit of 4 MiB counts bytes, not characters", () => {
  const { stream, state } = openStream();
  const sink = createLineSink(stream);
  state.stall = true;
  for (let count = 0; count < 100; count++) sink.write(`${"€".repeat(65_535)}\n`);
  assert.ok(stream.writableLength <= 4 * 1024 * 1024, `${stream.writableLength}`);
});
