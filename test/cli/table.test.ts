import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPairs, formatTable, formatValue, visible } from "../../src/cli/table.ts";

const COLUMNS = ["name*", "id"];

function format(items: readonly Readonly<Record<string, unknown>>[], columns?: number): string {
  return formatTable(items, COLUMNS, { columns, bold: (text) => text });
}

test("formatTable() aligns columns under their titles, without trailing spaces", () => {
  assert.equal(
    format([{ name: "a", id: "u1" }, { name: "abcdef", id: "u22" }]),
    "NAME    ID\na       u1\nabcdef  u22",
  );
});

test("formatTable() shortens columns that may shrink, so that no line wraps", () => {
  const text = format([{ name: "x".repeat(60), id: "u".repeat(25) }], 50);

  assert.ok(text.split("\n").every((line) => line.length <= 50), text);
  assert.match(text, /x…  u{25}$/);
});

test("formatTable() shortens the widest column first, whichever it is", () => {
  const columns = ["name*", "id", "url*"];
  const item = { name: "n".repeat(20), id: "u".repeat(25), url: "x".repeat(60) };
  const layout = (width: number) => ({ columns: width, bold: (text: string) => text });

  const wide = formatTable([item], columns, layout(80));
  const narrow = formatTable([item], columns, layout(60));

  assert.match(wide, /^n{20}  u{25}  x{30}…$/m);
  assert.match(narrow, /^n{14}…  u{25}  x{15}…$/m);
});

test("formatTable() shortens nothing where the output is not a terminal", () => {
  assert.match(format([{ name: "x".repeat(300), id: "u1" }]), /^x{300}  u1$/m);
});

test("formatTable() shows a block with the whole id for each item that does not fit", () => {
  const text = format([{ name: "a", id: "u".repeat(25) }, { name: "b", id: "v" }], 30);

  assert.equal(text, `  NAME  a\n  ID    ${"u".repeat(25)}\n\n  NAME  b\n  ID    v`);
});

test("formatTable() counts characters, and splits no surrogate pair", () => {
  assert.equal(
    format([{ name: "𝒜𝒷", id: "u1" }, { name: "abc", id: "u2" }]),
    "NAME  ID\n𝒜𝒷    u1\nabc   u2",
  );
  assert.match(format([{ name: "𝒜".repeat(40), id: "u1" }], 24), /^𝒜{19}…  u1$/mu);
});

test("formatTable() lets no value move the cursor or start a line", () => {
  const text = format([{ name: "a\u001b[2J\nb\u202ec", id: "u1" }]);

  assert.equal(text.split("\n").length, 2);
  assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u);
});

test("formatPairs() aligns values", () => {
  assert.equal(formatPairs([["id", "u1"], ["scopes", ["a", "b"]]]), "  id      u1\n  scopes  a b");
});

const VALUES: readonly (readonly [value: unknown, shown: string])[] = [
  [undefined, "-"],
  [null, "-"],
  ["", "-"],
  [[], "-"],
  [["a", "b"], "a b"],
  [true, "yes"],
  [false, "no"],
  [0, "0"],
  ["text", "text"],
  ["2030-01-31T12:34:56.789Z", "2030-01-31 12:34:56Z"],
  ["2030-01-31T12:34:56Z", "2030-01-31 12:34:56Z"],
  [{ a: 1 }, '{"a":1}'],
];

for (const [value, shown] of VALUES) {
  test(`formatValue() shows ${JSON.stringify(value)} as ${shown}`, () => {
    assert.equal(formatValue(value), shown);
  });
}

test("visible() keeps letters of every script and replaces invisible characters", () => {
  assert.equal(visible("Grüße 日本"), "Grüße 日本");
  assert.equal(visible("\u0000\u200b\u2028\ud800"), "\ufffd\ufffd\ufffd\ufffd");
});
