import assert from "node:assert/strict";
import { test } from "node:test";
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
  assert.deepEqual(catalogue(endpoints), [
    { name: "a", description: "A", scope: [] },
    { name: "order.created", description: "First", scope: [] },
    { name: "order.shipped", description: "Sent", scope: ["orders", "post"] },
  ]);
  assert.deepEqual(catalogue([]), []);
});
