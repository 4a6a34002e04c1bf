import assert from "node:assert/strict";
import { test } from "node:test";
import { sql, type Sql, sqlText, type SqlValue } from "../../src/database/sql.ts";

/** One template, as at one call site, for any two values. */
const both = (first: Sql | SqlValue, second: Sql | SqlValue) => sql`a = ${first} AND b = ${second}`;

test("values are bound; pieces become part of the text, with their own values in order", () => {
  const piece = sql`max(c, ${7})`;
  assert.deepEqual(both(1, piece), { sql: "a = ? AND b = max(c, ?)", params: [1, 7] });
  assert.deepEqual(both(piece, "x"), { sql: "a = max(c, ?) AND b = ?", params: [7, "x"] });
});

test("one template gives the right text for each mixture of values and pieces", () => {
  const pieces = [sql`c`, sql`d`] as const;
  const texts = () =>
    [both(1, null), both(...pieces), both(1, pieces[0]), both(...pieces), both(2, 3)]
      .map((each) => each.sql);
  const expected = ["a = ? AND b = ?", "a = c AND b = d", "a = ? AND b = c", "a = c AND b = d",
    "a = ? AND b = ?"];
  assert.deepEqual([texts(), texts()], [expected, expected]);
  assert.deepEqual(both("?", new Uint8Array(1)).params, ["?", new Uint8Array(1)]);
});

test("one template gives the right text for more variants than it caches", () => {
  const names = Array.from({ length: 20 }, (_, at) => `c${at}`);
  for (const name of [...names, ...names]) {
    assert.equal(both(1, { sql: name, params: [] }).sql, `a = ? AND b = ${name}`);
  }
});

test("sqlText() escapes a quote in a literal", () => {
  assert.equal(sqlText("a'b").sql, "'a''b'");
});
