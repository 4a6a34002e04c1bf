import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { checkEventName, isDispatchableName, isPrincipalId } from "../../src/event/event.ts";

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

describe("checkEventName()", () => {
  for (const [name, isGood] of NAMES) {
    test(`${isGood ? "takes" : "refuses"} ${JSON.stringify(name).slice(0, 40)}`, () => {
      assert.equal(checkEventName(name) === undefined, isGood);
    });
  }

  test("takes the service's own names: they can be subscribed to", () => {
    assert.equal(checkEventName("gatepost.delivery.failed"), undefined);
  });
});

describe("isDispatchableName()", () => {
  for (const [name, isGood] of NAMES) {
    test(`${isGood ? "takes" : "refuses"} ${JSON.stringify(name).slice(0, 40)}`, () => {
      assert.equal(isDispatchableName(name), isGood);
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
    test(`${isGood ? "takes" : "keeps"} ${name}`, () => {
      assert.equal(isDispatchableName(name), isGood);
    });
  }
});

describe("isPrincipalId()", () => {
  test("takes the ids of users and apps", () => {
    assert.equal(isPrincipalId(newId("u", 1)), true);
    assert.equal(isPrincipalId(newId("a", 1)), true);
  });

  const others: readonly unknown[] = [
    undefined, null, "", "u", "a1", 7, {}, [], newId("s", 1), newId("e", 1), "U0mwpcfbti000xz9",
    "u0mwpcfbti-00xz9eo0", "admin", "u%", `u${"0".repeat(80)}`,
  ];
  for (const value of others) {
    test(`refuses ${JSON.stringify(value)?.slice(0, 40)}`, () => {
      assert.equal(isPrincipalId(value), false);
    });
  }
});
