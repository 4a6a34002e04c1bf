import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { encodeJson, parseJson } from "../../src/base/json.ts";
import { Problem } from "../../src/base/problem.ts";

const DEEPEST = nested(64);

describe("parseJson() reads (RFC 8259 §2)", () => {
  const table: [what: string, text: string, value: unknown][] = [
    ["an object", '{"a":[1,true,null,"b"]}', { a: [1, true, null, "b"] }],
    ["a string alone", '"a"', "a"],
    ["null alone", "null", null],
    ["a number alone", "-1.5e3", -1500],
    ["white space around a value", " \t\r\n{} \n", {}],
    ["UTF-8", '"\u00fc\u{1f511}"', "\u00fc\u{1f511}"],
    ["escapes", '"\\u00fc\\n\\"\\\\"', 'ü\n"\\'],
    ["brackets in a string", `"${"[".repeat(100)}"`, "[".repeat(100)],
    ["brackets after an escaped quote", `"\\"${"{".repeat(100)}"`, `"${"{".repeat(100)}`],
    ["brackets after an escaped backslash", `["\\\\",[]]`, ["\\", []]],
    ["64 arrays inside each other", DEEPEST, JSON.parse(DEEPEST)],
    ["more than 64 arrays beside each other", `[${"[],".repeat(200)}[]]`,
      Array.from({ length: 201 }, () => [])],
    ["the last of two members with one name", '{"a":1,"a":2}', { a: 2 }],
    ["__proto__ as a value", '["__proto__"]', ["__proto__"]],
    ["__proto__ as a member's value", '{"a":"__proto__"}', { a: "__proto__" }],
    ["__proto__ before a comma", '["__proto__" , ":"]', ["__proto__", ":"]],
    ["a member that only contains __proto__", '{"x__proto__":1,"__proto__x":2}',
      { x__proto__: 1, __proto__x: 2 }],
    ["a member named with a quote and __proto__", '{"\\"__proto__":1}', { '"__proto__': 1 }],
    ["a member that ends in __proto__ after escapes", '{"\\\\\\"__proto__":1}',
      { '\\"__proto__': 1 }],
    ["a string that holds such a member", '["{\\"__proto__\\":1}"]', ['{"__proto__":1}']],
    ["a member whose backslash is escaped", '{"\\\\u005f_proto__":1}', { "\\u005f_proto__": 1 }],
    ["numbers that are not too large", '[1.7976931348623157e308,0e999,"1e999"]',
      [Number.MAX_VALUE, 0, "1e999"]],
    ["constructor, which is an ordinary name", '{"constructor":1}', { constructor: 1 }],
  ];
  for (const [what, text, value] of table) {
    test(what, () => assert.deepEqual(parseJson(Buffer.from(text)), value));
  }
});

describe("parseJson() refuses (RFC 8259 §2, §8.1)", () => {
  const table: [what: string, body: string | Uint8Array][] = [
    ["an empty body", ""],
    ["white space alone", " \n"],
    ["a word", "secret"],
    ["two values", "{} {}"],
    ["a comma at the end", '{"a":1,}'],
    ["single quotes", "{'a':1}"],
    ["a comment", "/* */ {}"],
    ["NaN", "NaN"],
    ["a leading zero", "01"],
    ["an array without its end", "[1"],
    ["a string without its end", '"a'],
    ["an escape without its end", '"a\\'],
    ["a line feed in a string", '"a\nb"'],
    ["a NUL at the end", "{}\u0000"],
    ["a byte order mark", "\ufeff{}"],
    ["a no-break space", "\u00a0{}"],
    ["a form", "username=a&password=b"],
    ["a byte that is not UTF-8", Uint8Array.of(0x22, 0xff, 0x22)],
    ["Latin-1", Buffer.from('"\u00fc"', "latin1")],
    ["overlong UTF-8", Uint8Array.of(0x22, 0xc0, 0xaf, 0x22)],
    ["a raw surrogate", Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)],
    ["cut-off UTF-8", Uint8Array.of(0x22, 0xe2, 0x82)],
    ["UTF-16", Buffer.from("{}", "utf16le")],
    ["65 arrays inside each other", nested(65)],
    ["65 objects inside each other", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`],
    ["66 arrays and objects inside each other", `${'[{"a":'.repeat(33)}1${"}]".repeat(33)}`],
    ["a megabyte of open brackets", "[".repeat(1_000_000)],
    ["a megabyte of open members", '{"a":'.repeat(200_000)],
    ["half a million arrays inside each other", nested(500_000)],
    ["a member __proto__", '{"__proto__":{"admin":true}}'],
    ["a member __proto__ before white space", '{"__proto__" \t\r\n : 1}'],
    ["a member __proto__ deep inside", '[{"a":[{"b":{"__proto__":1}}]}]'],
    ["a member __proto__ in a value that is replaced", '{"a":{"__proto__":1},"a":2}'],
    ["a member __proto__ after another", '{"a":1,"__proto__":1}'],
    ["a member __proto__ after an escaped quote", '{"a":"\\"","__proto__":1}'],
    ["a member __proto__ after a backslash", '{"a":"\\\\","__proto__":1}'],
    ["a number past the range of a double", '{"a":[0,-1e309]}'],
    ["a number with too many digits", `${"9".repeat(309)}`],
    ["a number with many digits and an exponent", `[${"9".repeat(290)}.5E+0020]`],
    ["a member __proto__ with one escape", '{"\\u005f_proto__":1}'],
    ["a member __proto__ with one escape, upper case", '{"\\u005F_proto__":1}'],
    ["a member __proto__ with its last character escaped", '{"__proto_\\u005f":1}'],
    ["a member __proto__ with a letter escaped", '{"__pr\\u006fto__":1}'],
    ["a member __proto__ with every character escaped",
      '{"\\u005f\\u005F\\u0070\\u0072\\u006f\\u0074\\u006F\\u005f\\u005f":1}'],
  ];
  for (const [what, body] of table) {
    test(what, () => {
      assert.throws(() => parseJson(Buffer.from(body)), (error) => isMalformed(error));
    });
  }
});

test("parseJson() repeats nothing of its input in its errors", () => {
  const texts = ['{"pass":"hunter2"', '{"pass":hunter2}', '{"hunter2":{"__proto__":1}}'];
  for (const text of texts) {
    assert.throws(() => parseJson(Buffer.from(text)), (error) => {
      assert.ok(error instanceof Problem);
      assert.doesNotMatch(`${error.message} ${error.stack} ${String(error.cause)}`, /hunter2/);
      return true;
    });
  }
});

test("parseJson() takes linear time on many near-matches of __proto__ and huge numbers", () => {
  const texts = [
    `[${'"__proto__"     ,'.repeat(50_000)}0]`,
    `["__proto__"${" ".repeat(1_000_000)}]`,
    `"${"_".repeat(1_000_000)}"`,
    `"${"\\u005f".repeat(150_000)}"`,
    `[${`${"9".repeat(299)},`.repeat(3_000)}0]`,
    `[1.${"9".repeat(1_000_000)}]`,
  ];
  const before = process.cpuUsage();
  for (const text of texts) parseJson(Buffer.from(text));
  assert.ok(process.cpuUsage(before).user < 2_000_000); // quadratic time would take minutes
});

test("parseJson() with exactIntegers takes less than 10 times as long as without", () => {
  const bytes = Buffer.from(`[${"0,".repeat(500_000)}9007199254740993]`);
  const cpuOf = (options: Parameters<typeof parseJson>[1]): number => {
    const before = process.cpuUsage();
    for (let times = 0; times < 3; times++) parseJson(bytes, options);
    return process.cpuUsage(before).user;
  };
  cpuOf({});
  assert.ok(cpuOf({ exactIntegers: true }) < 10 * cpuOf({}));
});

describe("encodeJson() writes", () => {
  const table: [what: string, data: unknown, text: string][] = [
    ["an object", { a: [1, "b", true] }, '{"a":[1,"b",true]}'],
    ["null", null, "null"],
    ["null in an object", { a: null }, '{"a":null}'],
    ["a string", "a", '"a"'],
    ["a date", new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ["no member that is undefined", { a: undefined, b: 1 }, '{"b":1}'],
    ["no member that is a function or a symbol", { a: () => 1, b: Symbol("b") }, "{}"],
    ["undefined in an array as null", [undefined], "[null]"],
    ["one object in two places", ((a) => [a, a])({ x: null }), '[{"x":null},{"x":null}]'],
    ["a lone surrogate as an escape", "\ud800", '"\\ud800"'],
    ["empty objects", { a: {}, b: [{}] }, '{"a":{},"b":[{}]}'],
    ["a map with a toJSON()", Object.assign(new Map(), { toJSON: () => 1 }), "1"],
    ["boxed values", [new Number(1), new String(""), new Boolean(false), {}], '[1,"",false,{}]'],
    ["empty objects of another realm or without a prototype",
      [runInNewContext("({})"), Object.create(null)],
      "[{},{}]"],
    ["the own members of an error", Object.assign(new Error("a"), { code: "B" }), '{"code":"B"}'],
    ["the word null in a string", { a: "nullable" }, '{"a":"nullable"}'],
  ];
  for (const [what, data, text] of table) {
    test(what, () => assert.equal(encodeJson(data), text));
  }
});

describe("encodeJson() throws TypeError for", () => {
  const cycle: unknown[] = [1];
  cycle.push(cycle);
  const nullCycle: unknown[] = [null];
  nullCycle.push({ nullCycle });
  let deep: unknown = null;
  for (let depth = 0; depth < 300_000; depth++) deep = [deep];
  const table: [what: string, data: unknown][] = [
    ["undefined", undefined],
    ["a function", () => 1],
    ["a symbol", Symbol("a")],
    ["an object whose toJSON() returns undefined", { toJSON: () => undefined }],
    ["a BigInt", 1n],
    ["a BigInt in an object", { a: [1n] }],
    ["a cycle", cycle],
    ["a cycle with a null in it", nullCycle],
    ["NaN", NaN],
    ["NaN in an array", { a: [NaN] }],
    ["an infinity", Infinity],
    ["a negative infinity in an array", [-Infinity]],
    ["NaN as an object", { a: new Number(NaN) }],
    ["NaN beside a null", [null, NaN]],
    ["NaN from toJSON()", { a: { toJSON: () => NaN } }],
    ["a promise", Promise.resolve(1)],
    ["a promise in an array", { a: [Promise.resolve(1)] }],
    ["a map in an object", { a: new Map([[1, 2]]) }],
    ["a set", new Set([1])],
    ["an iterator of a map", new Map([[1, 2]]).values()],
    ["a generator in an array", [(function* () { yield 1; })()]],
    ["a stream in an object", { a: new ReadableStream() }],
    ["an error in an object", { a: new Error("lost") }],
    ["the query of a request", { query: new URLSearchParams("a=1") }],
    ["headers in an array", [new Headers({ a: "1" })]],
    ["a regular expression", /a/],
    ["an object with private fields", new (class { #a = 1; read() { return this.#a; } })()],
    ["an object with private fields and an own method",
      new (class { #a = 1; read = () => this.#a; })()],
    ["bytes in an object", { a: new ArrayBuffer(1), b: new Blob(["x"]) }],
    ["nesting too deep for the stack", deep],
  ];
  for (const [what, data] of table) {
    test(what, () => assert.throws(() => encodeJson(data), TypeError));
  }
});

describe("parseJson() with exactIntegers", () => {
  const table: readonly (readonly [text: string, value: number])[] = [
    ["9007199254740992", 2 ** 53],
    ["9007199254740993", Infinity],
    ["-9007199254740993", Infinity],
    ["1e30", 1e30],
    ["0.1", 0.1],
    ["-0", -0],
    ["1e999", Infinity],
    ["9".repeat(400), Infinity],
    ["1e-9007199254740993", 0],
    ["0.9007199254740993", 0.9007199254740993],
    ["9007199254740993.5", 9007199254740993.5],
    ["9007199254740993e0", 9007199254740993e0],
    ["1E+9007199254740993", Infinity],
  ];
  for (const [text, value] of table) {
    test(`reads ${text} as ${value}`, () => {
      const bytes = Buffer.from(`{"a":[${text}]}`);
      assert.deepEqual(parseJson(bytes, { exactIntegers: true }), { a: [value] });
    });
  }

  test("does not change strings", () => {
    const text = String.raw`["9007199254740993", "\"", 9007199254740993, "\\", " ,9007199254740993",
      {"9007199254740993": "\u90079007199254740993\"9007199254740993"}, "\\\"9007199254740993"]`;
    const expected: unknown[] = JSON.parse(text);
    expected[2] = Infinity;
    assert.deepEqual(parseJson(Buffer.from(text), { exactIntegers: true }), expected);
  });
});

test("encodeJson() rethrows what toJSON() throws", () => {
  class OwnError extends Error {}
  const data = { toJSON: () => { throw new OwnError("own"); } };
  assert.throws(() => encodeJson(data), OwnError);
});

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

function isMalformed(error: unknown): boolean {
  assert.ok(error instanceof Problem);
  assert.equal(error.status, 400);
  assert.equal(error.code, "malformed");
  return true;
}
