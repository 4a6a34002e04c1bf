import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../../src/base/shape.ts";
import { catalogue } from "../../src/hosting/catalogue.ts";

test("catalogue() lists every declared event once, by name", () => {
  const event = (name: string, description: string, scope: string[] = []) =>
    ({ name, description, scope });
  const endpoints = [
    { emits: [event("order.shipped", "Sent", ["orders", "post"])] },
    { emits: [event("order.created", "First")] },
    { emits: [] },
    { emits: [event("order.created", "Second"), event("a", "A")] },
  ];
  const listed = catalogue(endpoints).map(({ name, description, scope }) =>
    ({ name, description, scope })
  );
  assert.deepEqual(listed, [
    { name: "a", description: "A", scope: [] },
    { name: "order.created", description: "First", scope: [] },
    { name: "order.shipped", description: "Sent", scope: ["orders", "post"] },
  ]);
  assert.deepEqual(catalogue([]), []);
});

test("catalogue() uses the first schema and the first example, wherever they are declared", () => {
  const [data, other] = [shown({ type: "null" }), shown({})];
  const event = { name: "a", scope: [] };
  const endpoints = [
    { emits: [{ ...event, description: "First" }] },
    { emits: [{ ...event, description: "Second", data, example: null }] },
    { emits: [{ ...event, description: "Third", data: other, example: 3 }] },
  ];
  assert.deepEqual(catalogue(endpoints), [
    { ...event, description: "First", data, example: null },
  ]);
});
