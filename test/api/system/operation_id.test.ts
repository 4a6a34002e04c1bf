import assert from "node:assert/strict";
import { test } from "node:test";
import { eventId, operationId } from "../../../src/api/system/operation_id.ts";

// a template of OpenAPI, the id
const IDS: readonly [template: string, id: string][] = [
  ["/", "get_"],
  ["/orders", "get_orders"],
  ["/v1/products/{id}", "get_v1_products_id"],
  ["/articles/{slug}", "get_articles_by_slug"],
  ["/cat/{a}/{b}", "get_cat_by_a_by_b"],
  ["/files/{0}", "get_files_by_0"],
  ["/gift-cards", "get_gift__2d_cards"],
  ["/{name}.json", "get___7b_name__7d___2e_json"],
];

for (const [template, id] of IDS) {
  test(`the id of GET ${template} is ${id}`, () => assert.equal(operationId("GET", template), id));
}

test("no two paths share an id, whatever their characters", () => {
  const segments = [
    "a", "A", "by", "id", "_", "-", "2d", "a-b", "a_b", "a.b", "ab", "x69", "__69_d", "d",
    "{id}", "{by}", "{a}", "{0}", "{a}{id}", "a{id}", "{_}", "{größe}", "größe", "\ud800",
  ];
  const pairs = segments.flatMap((one) => segments.flatMap((other) => [
    `/${one}/${other}`, `/${one}${other}`, `/a/${one}/${other}`, `/${one}/${other}/a`,
  ]));
  const paths = [...new Set(["/", ...segments.map((one) => `/${one}`), ...pairs])];
  const byId = Map.groupBy(paths, (path) => operationId("GET", path));
  assert.deepEqual([...byId.values()].filter(({ length }) => length > 1), []);
  for (const id of byId.keys()) assert.match(id, /^\w+$/);
});

test("no two events share an id", () => {
  assert.equal(eventId("order.created"), "order_created");
  const parts = ["a", "A", ".", "_", "-", ":", "a.b", "2d", "..", "d"];
  const names = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) =>
    `${one}${two}${three}`
  )));
  const byId = Map.groupBy(new Set(names), (name) => eventId(name));
  assert.deepEqual([...byId.values()].filter(({ length }) => length > 1), []);
  for (const id of byId.keys()) assert.match(id, /^\w+$/);
});
