import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { estimateParsed } from "../../src/http/parsed_size.ts";

const SIZE = 2 ** 20;

/** JSON of `SIZE` bytes, with members made by `make`. */
function listOf(make: (index: number) => string): string {
  const members: string[] = [];
  for (let length = 2; length < SIZE; length += members.at(-1)?.length ?? 0, length++) {
    members.push(make(members.length));
  }
  return `[${members.join(",")}]`;
}

/** The bytes that V8 needs for the result of `parse`, measured in another process. */
function measure(parse: string, text: string): number {
  const code = `const text = require("fs").readFileSync(0, "latin1");
    gc(); const before = process.memoryUsage().heapUsed;
    globalThis.kept = ${parse}; gc();
    console.log(process.memoryUsage().heapUsed - before);`;
  const { stdout } = spawnSync(process.execPath, ["--expose-gc", "-e", code], { input: text });
  return Number(String(stdout));
}

const TEXTS: readonly [what: string, text: string][] = [
  ["empty objects", listOf(() => "{}")],
  ["empty arrays", listOf(() => "[]")],
  ["arrays in arrays", listOf(() => "[[]]")],
  ["objects in objects with a number as a name", listOf(() => '{"99":{}}')],
  ["objects with a number as a name", listOf(() => '{"1023":0}')],
  ["objects of different shapes", listOf((index) => `{"${index.toString(36)}":{}}`)],
  ["strings", listOf((index) => `"${index.toString(36)}"`)],
  ["fractions beside an object", `[{},${listOf(() => "1.5").slice(1)}`],
];

for (const [what, text] of TEXTS) {
  test(`parsed JSON of ${what} takes no more memory than estimated`, () => {
    const bytes = measure("JSON.parse(text)", text);
    const estimated = estimateParsed("application/json", Buffer.from(text));
    assert.ok(bytes > SIZE, "it was measured");
    assert.ok(bytes <= estimated, `${bytes} of ${estimated}`);
    assert.ok(estimated <= 33.1 * text.length, `${estimated / text.length} times`);
  });
}

test("a parsed form takes no more memory than estimated", () => {
  for (const pair of ["a&", "ab=cd&", "a=b&"]) {
    const text = pair.repeat(60_000);
    const bytes = measure("new URLSearchParams(text)", text);
    const estimated = estimateParsed("application/x-www-form-urlencoded", Buffer.from(text));
    assert.ok(bytes > 0 && bytes <= estimated, `${pair}: ${bytes} of ${estimated}`);
  }
});

test("the estimate is 0 for a body of another type", () => {
  assert.equal(estimateParsed("text/plain", Buffer.from("[{},{}]")), 0);
  assert.equal(estimateParsed(undefined, Buffer.from("[{},{}]")), 0);
});
