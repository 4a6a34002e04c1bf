import assert from "node:assert/strict";
import { test } from "node:test";
import { FLAG, listOf, nullable, optional, record, TEXT } from "../../src/base/shape.ts";
import { columnsOf } from "../../src/store/columns.ts";

const { names, values, read } = columnsOf({
  name: optional(TEXT),
  redirect_uris: optional(nullable(listOf(TEXT))),
  jwks: optional(nullable(record({ keys: listOf(TEXT) }))),
  resource_server: optional(FLAG),
  rate: optional(nullable(TEXT)),
});
const ITEM = {
  name: "A",
  redirectUris: ["/"],
  jwks: [{ kid: "1" }],
  resourceServer: true,
  rate: null,
};
const STORED = ["A", '["/"]', '[{"kid":"1"}]', 1, null];

test("columnsOf() names columns as fields, and stores lists as JSON and flags as 0 and 1", () => {
  assert.equal(names.sql, "name, redirectUris, jwks, resourceServer, rate");
  assert.deepEqual(values(ITEM), { sql: "?, ?, ?, ?, ?", params: STORED });
});

test("columnsOf() decodes its own columns of a row, and leaves the others", () => {
  const [name, redirectUris, jwks, resourceServer, rate] = STORED;
  const row = { id: "a1", name, redirectUris, jwks, resourceServer, rate };
  assert.deepEqual(read(row), { id: "a1", ...ITEM });
});
