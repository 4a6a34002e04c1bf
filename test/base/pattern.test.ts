import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkPattern } from "../../src/base/pattern.ts";
import { openRandom, type Random } from "../helpers/random.ts";

type Row = [pattern: string, maxLength?: number];

/** Far more than an accepted pattern needs for a text, far less than a catastrophic one. */
const TOO_LONG_MS = 5_000;

describe("checkPattern() accepts a pattern that can match a text in few ways:", () => {
  const rows: Row[] = [
    [""], ["x"], ["^$"], ["."], ["^.*$"], ["^[a-z]+(-[a-z]+)*$"], ["^\\d{4}-\\d{2}$"], ["\\d{4}"],
    ["^(?:[A-Z]{2,3}|\\d+)$"], ["^(?<year>\\d{4})(-\\d\\d)?$"], ["^\\p{Lu}\\p{Ll}+(-\\p{Lu}+)*$"],
    ["^(jan|feb|mar|apr|may|jun)$"], ["^https?://(www\\.)?[a-z.]+$"], ["^[\\]()|*+?{}^$]+x$"],
    ["^(\\p{Lu}\\p{Ll}+)+$"], ["^\\u{1F600}+\\ud83d\\ude01$"], ["^(\\b[a-z]+ )*$"], ["^(a|b)*c"],
    ["^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", 256], ["\\d+x", 256], ["^a*?b+?$"], ["^a|^b+"], ["^[]*x$"],
    ["colou?r"], ["a{255}b", 65_536], ["^a{5000}b"],
    ["^(?:\\u{2000B}|[a-z\\ud83d\\ude00])+$"], ["^𠀋[^,]*,"],
  ];
  for (const [pattern, maxLength] of rows) {
    test(`${pattern} for ${maxLength ?? "any number of"} characters`, () => {
      assert.equal(checkPattern(pattern, maxLength), undefined);
    });
  }
});

describe("checkPattern() refuses a pattern that could take long:", () => {
  const rows: Row[] = [
    ["^(a+)+$", 10], ["^(a|a)*$", 10], ["^(a|aa)+$", 10], ["^(a*)*$", 10], ["^(a?){2}$", 10],
    ["^(.*,){5}$", 50], ["^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$"],
    ["^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", 257], ["\\d+x"], ["\\d+x", 257], ["^a|b+c"], ["^.*x$"],
    ["^\\w+\\d+$"], ["^[a-c]+[c-e]$"], ["^\\u{1F600}+[\\u{1F5FF}-\\u{1F601}]$"], ["^(x+|y)+x$", 9],
    ["^a{0,20}a$"], ["^(a?|b?)(c?|d?)(a?|b?)(c?|d?)(a?|b?)(c?|d?)(a?|b?)(c?|d?)(a?|b?)$", 9],
    ["^a*\\ba*\\b$"], ["^é+[^e]$"], ["^(?:(?:ab?)?b?)+$", 9], ["^\\u0061+a$"], ["^(a|b|)*$", 9],
    ["a{5000}b"], ["(?:[ab]{30}){30}c", 65_536], ["x?a{16}"],
    ["^(?:\\u{10FFFF}|[^a])+$", 9], ["^(?:𠀋|\\S)+$", 9], ["^(?:𠀋|[a\\ud840\\udc0b])+$", 9],
  ];
  for (const [pattern, maxLength] of rows) {
    test(`${pattern} for ${maxLength ?? "any number of"} characters`, () => {
      assert.match(String(checkPattern(pattern, maxLength)), /Could take long: begin it with \^/);
    });
  }
});

test("checkPattern() refuses a pattern that it cannot judge or that is not valid", () => {
  const unknown = ["(a)\\1", "(?<a>b)\\k<a>", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)", "(?i:a)"];
  for (const pattern of unknown) {
    assert.match(String(checkPattern(pattern)), /no backreference, lookaround/, pattern);
  }
  for (const pattern of ["(", "a**", "[b-a]", "\\q", "{", "]"]) {
    assert.match(String(checkPattern(pattern)), /valid with flag u/, pattern);
  }
});

test("checkPattern() accepts no random pattern that takes long for a hostile text", (t) => {
  const random = openRandom(t);
  const ends = ["", "!", "a", "b-", "\n"];
  let accepted = 0;
  for (let run = 0; run < 4_000; run++) {
    const maxLength = random.pick([64, 256, 4_000]);
    const pattern = random.pick(["^", "^", "^", ""]) + randomPattern(random, 3) +
      random.pick(["$", "$", ""]);
    if (checkPattern(pattern, maxLength) !== undefined) continue;
    accepted++;
    const expression = new RegExp(pattern, "u");
    for (const end of ends) {
      const piece = random.text("abc-", 4) || "a";
      const text = piece.repeat(maxLength).slice(0, maxLength - 1) + end;
      const startedMs = performance.now();
      expression.test(text);
      const tookMs = performance.now() - startedMs;
      assert.ok(tookMs < TOO_LONG_MS, `${pattern} on ${piece}…${end} (seed ${random.seed})`);
    }
  }
  t.diagnostic(`${accepted} of 4000 accepted`);
  assert.ok(accepted > 400 && accepted < 3_600);
});

function randomPattern(random: Random, depth: number): string {
  const atom = () => {
    if (depth > 0 && random.chance(40)) {
      return `(${random.chance(50) ? "?:" : ""}${randomPattern(random, depth - 1)})`;
    }
    return random.pick(["a", "b", "c", "-", "[ab]", "[^a]", ".", "\\w", "[b-]", "a", "b"]);
  };
  const quantifiers = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{2,}"];
  const part = () => atom() + random.pick(quantifiers);
  const branch = () => Array.from({ length: 1 + random.below(4) }, part).join("");
  return Array.from({ length: random.pick([1, 1, 2, 3]) }, branch).join("|");
}
