import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { type Shape, parseShape } from "../../src/base/shape.ts";
import { checkDispatchableName, EVENT_NAME, NewEvent } from "../../src/event/event.ts";

/** The pointers of the errors of a value; none if it is valid. */
function errorsOf(shape: Shape<unknown>, value: unknown): string[] {
  const pointers: string[] = [];
  shape.parse(value, (_detail, pointer = "") => pointers.push(pointer));
  return pointers;
}

const NAMES: readonly (readonly [name: string, isGood: boolean])[] = [
  ["order.created", true],
  ["a", true],
  ["A-Z_a-z.0:9", true],
  ["x".repeat(128), true],
  ["", false],
  ["x".repeat(129), false],
  ["order created", false],
  ["order/created", false],
  ["order\ncreated", false],
  ["order.created\n", false],
  ["ordér", false],
  ["order,created", false],
  ["order*", false],
];

describe("EVENT_NAME", () => {
  for (const [name, isGood] of NAMES) {
    test(`${isGood ? "accepts" : "refuses"} ${JSON.stringify(name).slice(0, 40)}`, () => {
      assert.deepEqual(errorsOf(EVENT_NAME, name), isGood ? [] : [""]);
    });
  }

  test("accepts names of the service's own events, to which one may subscribe", () => {
    assert.deepEqual(errorsOf(EVENT_NAME, "gatepost.delivery.failed"), []);
  });
});

describe("checkDispatchableName()", () => {
  for (const [name, isGood] of NAMES) {
    test(`${isGood ? "accepts" : "refuses"} ${JSON.stringify(name).slice(0, 40)}`, () => {
      assert.equal(checkDispatchableName(name) === undefined, isGood);
    });
  }

  const own: readonly (readonly [name: string, isGood: boolean])[] = [
    ["gatepost.", false],
    ["gatepost.delivery.failed", false],
    ["gatepost", true],
    ["gateposts.x", true],
    ["my.gatepost.x", true],
  ];
  for (const [name, isGood] of own) {
    test(`${isGood ? "accepts" : "refuses"} ${name}`, () => {
      assert.equal(checkDispatchableName(name) === undefined, isGood);
    });
  }
});

describe("an event's subject", () => {
  const { subject } = NewEvent.members;

  test("is the id of a user or an app", () => {
    assert.deepEqual(errorsOf(subject, newId("u", 1)), []);
    assert.deepEqual(errorsOf(subject, newId("a", 1)), []);
  });

  const others: readonly unknown[] = [
    undefined, null, "", "u", "a1", 7, {}, [], newId("s", 1), newId("e", 1), "U0mwpcfbti000xz9",
    "u0mwpcfbti-00xz9eo0", "admin", "u%", `u${"0".repeat(80)}`,
  ];
  for (const value of others) {
    test(`is not ${JSON.stringify(value)?.slice(0, 40)}`, () => {
      assert.deepEqual(errorsOf(subject, value), [""]);
    });
  }
});

describe("an event's key", () => {
  const { key } = NewEvent.members;

  test("is 1 to 256 characters of any kind", () => {
    for (const value of ["7", " ", "a\nb", "\0", "x".repeat(256), "😀".repeat(256)]) {
      assert.deepEqual(errorsOf(key, value), [], JSON.stringify(value));
    }
  });

  const others: readonly unknown[] = [
    undefined, null, "", 7, {}, ["7"], "x".repeat(257), "x".repeat(10_240), "😀".repeat(257),
    "a\ud800", // several such keys would be equal when they are stored
  ];
  for (const value of others) {
    test(`is not ${JSON.stringify(value)?.slice(0, 40)}`, () => {
      assert.deepEqual(errorsOf(key, value), [""]);
    });
  }
});

describe("NewEvent", () => {
  test("parses the data into the JSON text that callbacks send", () => {
    const event = { name: "a", data: { n: [1, null] }, subject: newId("u", 1) };
    const parsed = parseShape(NewEvent, event, "body");
    assert.deepEqual(parsed, { ...event, data: '{"n":[1,null]}' });
    assert.equal(parseShape(NewEvent, { name: "a", data: null }, "body").data, "null");
  });

  const wrong: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{}, ["/name", "/data"]],
    [{ name: "gatepost.x", data: 1 }, ["/name"]],
    [{ name: "a", data: [Infinity] }, ["/data"]], // from a number past the range of a double
    [{ name: "a", data: 1, subject: "u" }, ["/subject"]],
    [{ name: "a", data: 1, subject: null }, ["/subject"]],
    [{ name: "a b", data: 1, to: "all" }, ["/name", "/to"]],
  ];
  for (const [body, pointers] of wrong) {
    test(`reports every error of ${JSON.stringify(body)}`, () => {
      assert.deepEqual(errorsOf(NewEvent, body), pointers);
    });
  }
});
