import assert from "node:assert/strict";
import { test } from "node:test";
import { sql, type Sql, sqlText, type SqlValue } from "../../src/database/sql.ts";

/** One template, as a call site has it, whatever its values are. */
const both = (first: Sql | SqlValue, second: Sql | SqlValue) => sql`a = ${first} AND b = ${second}`;

test("values are bound, and pieces become part of the text with their own values in order", () => {
  const piece = sql`max(c, ${7})`;
  assert.deepEqual(both(1, piece), { sql: "a = ? AND b = max(c, ?)", params: [1, 7] });
  assert.deepEqual(both(piece, "x"), { sql: "a = max(c, ?) AND b = ?", params: [7, "x"] });
});

test("one template has the text of what it is given, in whichever order that comes", () => {
  const pieces = [sql`c`, sql`d`] as const;
  const texts = () =>
    [both(1, null), both(...pieces), both(1, pieces[0]), both(...pieces), both(2, 3)]
      .map((each) => each.sql);
  const expected = ["a = ? AND b = ?", "a = c AND b = d", "a = ? AND b = c", "a = c AND b = d",
    "a = ? AND b = ?"];
  assert.deepEqual([texts(), texts()], [expected, expected]);
  assert.deepEqual(both("?", new Uint8Array(1)).params, ["?", new Uint8Array(1)]);
});

test("more variants than are kept of a template are right as well", () => {
  const names = Array.from({ length: 20 }, (_, at) => `c${at}`);
  for (const name of [...names, ...names]) {
    assert.equal(both(1, { sql: name, params: [] }).sql, `a = ? AND b = ${name}`);
  }
});

test("a word as a literal ends nowhere but at its end", () => {
  assert.equal(sqlText("a'b").sql, "'a''b'");
});
