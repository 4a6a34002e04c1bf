import assert from "node:assert/strict";
import { test } from "node:test";

import { pageStyle } from "../../../src/api/pages/page_style.ts";
import { PALETTE } from "../../../src/api/pages/palette.ts";
import { count } from "../../helpers/pages.ts";

/** WCAG 2.2, "contrast ratio": 1 to 21. */
function contrast(first: string, second: string): number {
  const [dark = 0, light = 0] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** WCAG 2.2, "relative luminance", of `#rrggbb`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("contrast() agrees with the definition's known values", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#777777", "#777777"), 1);
  assert.equal(contrast("#767676", "#ffffff").toFixed(2), "4.54");
});

type Role = keyof typeof PALETTE;

const textPairs: readonly (readonly [Role, Role])[] = [
  ["text", "page"],
  ["text", "surface"],
  ["text", "panel"],
  ["muted", "surface"],
  ["muted", "panel"],
  ["accent", "surface"],
  ["accentHover", "surface"],
  ["onAccent", "accent"],
  ["onAccent", "accentHover"],
  ["error", "errorPanel"],
  ["warning", "warningPanel"],
  ["notice", "noticePanel"],
];
const edgePairs: readonly (readonly [Role, Role])[] = [
  ["edge", "surface"],
  ["accent", "page"],
  ["error", "surface"],
  ["accent", "surface"],
];

for (const scheme of ["light", "dark"] as const) {
  test(`the ${scheme} palette's text has a contrast of 4.5 or more (WCAG 2.2 1.4.3 AA)`, () => {
    for (const [front, back] of textPairs) {
      const ratio = contrast(PALETTE[front][scheme], PALETTE[back][scheme]);
      assert.ok(ratio >= 4.5, `${front} on ${back}: ${ratio.toFixed(2)}`);
    }
  });

  test(`the ${scheme} palette's edges and focus ring have 3 or more (WCAG 2.2 1.4.11)`, () => {
    for (const [front, back] of edgePairs) {
      const ratio = contrast(PALETTE[front][scheme], PALETTE[back][scheme]);
      assert.ok(ratio >= 3, `${front} on ${back}: ${ratio.toFixed(2)}`);
    }
  });
}

test("the style sheet takes every colour from the palettes", () => {
  const known = new Set(Object.values(PALETTE).flatMap((colour) => Object.values(colour)));
  const used = pageStyle.match(/#[0-9a-f]{3,8}\b/gi) ?? [];
  assert.ok(used.length > 0);
  for (const colour of used) assert.ok(known.has(colour), colour);
  assert.doesNotMatch(pageStyle, /rgb|hsl|oklch/);
  const declared = new Set(pageStyle.match(/--[a-z-]+(?=:)/g));
  for (const [use, name = ""] of pageStyle.matchAll(/var\((--[a-z-]+)\)/g)) {
    assert.ok(declared.has(name), use);
  }
});

test("the style sheet supports dark mode, reduced motion, forced colours and the keyboard", () => {
  for (const feature of [
    "(prefers-color-scheme: dark)",
    "(prefers-reduced-motion: no-preference)",
    "(forced-colors: active)",
    ":focus-visible",
  ]) {
    assert.ok(pageStyle.includes(feature), feature);
  }
  assert.doesNotMatch(pageStyle, /outline:\s*(?:none|0)/);
  // Only the rules for users who accept motion may move anything.
  assert.equal(count(pageStyle, /transition|animation/g), 1);
});
