import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseShape } from "../../src/base/shape.ts";
import {
  ManagedSubscriptionChange,
  NewSubscription,
  SubscriptionChange,
} from "../../src/event/subscription.ts";
import { pointersOf } from "../helpers/problem.ts";

const GOOD = { event: "order.created", endpoint: "https://shop.example/hook" };

const create = (body: unknown) => parseShape(NewSubscription, body, "body");
const change = (body: unknown) => parseShape(SubscriptionChange, body, "body");

describe("NewSubscription", () => {
  test("parses event and endpoint", () => {
    assert.deepEqual(create(GOOD), GOOD);
  });

  const endpoints: readonly (readonly [endpoint: string, isGood: boolean])[] = [
    ["http://shop.example", true],
    ["http://shop.example/", true],
    ["https://shop.example:8443/a/b?x=1&y=%20", true],
    ["HTTPS://SHOP.example/Hook", true],
    ["https://münchen.example/", true],
    ["https://[2606:4700::1111]/x", true],
    [`https://shop.example/${"x".repeat(2048 - 21)}`, true],
    [`https://shop.example/${"x".repeat(2048 - 20)}`, false],
    ["", false],
    ["/hook", false],
    ["shop.example/hook", false],
    ["//shop.example/hook", false],
    ["ftp://shop.example/", false],
    ["file:///etc/passwd", false],
    ["javascript:alert(1)", false],
    ["data:text/plain,x", false],
    ["ws://shop.example/", false],
    ["http:shop.example", false],
    ["http://", false],
    ["http:///hook", false],
    ["http://shop.example:99999/", false],
    ["http://a b.example/", false],
    [" http://shop.example/", false],
    ["http://shop.example/ ", false],
    ["http://shop.example/a\tb", false],
    ["http://shop.example/a\nb", false],
    ["http://shop.example/\ud800", false],
    ["http://shop.example\\@evil.example/", false],
    ["http://user@shop.example/", false],
    ["http://user:pw@shop.example/", false],
    ["http://:pw@shop.example/", false],
    ["http://shop.example/#part", false],
    ["http://shop.example/#", false],
  ];
  for (const [endpoint, isGood] of endpoints) {
    test(`${isGood ? "accepts" : "refuses"} ${JSON.stringify(endpoint).slice(0, 50)}`, () => {
      const pointers = pointersOf(() => create({ ...GOOD, endpoint }));
      assert.deepEqual(pointers, isGood ? [] : ["/endpoint"]);
    });
  }

  const bodies: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{}, ["/endpoint", "/event"]],
    [{ event: "x" }, ["/endpoint"]],
    [{ ...GOOD, event: "" }, ["/event"]],
    [{ ...GOOD, event: 7 }, ["/event"]],
    [{ ...GOOD, event: null }, ["/event"]],
    [{ ...GOOD, endpoint: ["https://shop.example/"] }, ["/endpoint"]],
    [{ ...GOOD, secret: "whsec_x" }, ["/secret"]],
    [{ ...GOOD, id: "s1", status: "paused" }, ["/id", "/status"]],
    [{ "a/b~c": 1, event: "no spaces", endpoint: "x" }, ["/a~1b~0c", "/endpoint", "/event"]],
    [null, [""]],
    [[], [""]],
    ["order.created", [""]],
    [7, [""]],
  ];
  for (const [body, pointers] of bodies) {
    test(`reports every error of ${JSON.stringify(body)}`, () => {
      assert.deepEqual(pointersOf(() => create(body)).sort(), pointers);
    });
  }
});

describe("SubscriptionChange", () => {
  test("parses the given members", () => {
    assert.deepEqual(change({ status: "paused" }), { status: "paused" });
    const { endpoint } = GOOD;
    assert.deepEqual(change({ endpoint, status: "active" }), { endpoint, status: "active" });
  });

  const bodies: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{ status: "disabled" }, ["/status"]],
    [{ status: "deleted" }, ["/status"]],
    [{ status: "" }, ["/status"]],
    [{ status: 1 }, ["/status"]],
    [{ endpoint: "ftp://x" }, ["/endpoint"]],
    [{ event: "other" }, ["/event"]],
    [{ endpoint: 1, status: "x", secret: "y" }, ["/endpoint", "/secret", "/status"]],
    [null, [""]],
  ];
  for (const [body, pointers] of bodies) {
    test(`reports every error of ${JSON.stringify(body)}`, () => {
      assert.deepEqual(pointersOf(() => change(body)).sort(), pointers);
    });
  }
});

test("ManagedSubscriptionChange accepts disabled too, but not deleted", () => {
  const parse = (status: string) => parseShape(ManagedSubscriptionChange, { status }, "body");
  assert.deepEqual(parse("disabled"), { status: "disabled" });
  assert.deepEqual(pointersOf(() => parse("deleted")), ["/status"]);
});
