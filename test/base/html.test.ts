import assert from "node:assert/strict";
import { test } from "node:test";

import { attributes, html, type HtmlValue, renderHtml, styleElement } from "../../src/base/html.ts";
import { openRandom } from "../helpers/random.ts";

/** Calls the tag with these parts as a template literal does. */
function fill(parts: readonly string[], ...values: readonly HtmlValue[]): string {
  return renderHtml(html(Object.assign([...parts], { raw: parts }), ...values));
}

/** A value from JSON, as an attacker could send it. */
function fromJson(text: string): HtmlValue {
  const value: HtmlValue = JSON.parse(text);
  return value;
}

test("html escapes text", () => {
  const cases: readonly (readonly [HtmlValue, string])[] = [
    ["plain", "plain"],
    ["<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"],
    ["a & b", "a &amp; b"],
    ["&lt;", "&amp;lt;"],
    [`"'`, "&quot;&#39;"],
    ["&".repeat(3), "&amp;&amp;&amp;"],
    ["😀 שלום", "😀 שלום"],
    ["", ""],
    [0, "0"],
    [-1.5, "-1.5"],
    [false, ""],
    [null, ""],
    [undefined, ""],
    [["<", html`<b>&amp;</b>`, [">", 1, false]], "&lt;<b>&amp;</b>&gt;1"],
  ];
  for (const [value, expected] of cases) {
    assert.equal(renderHtml(html`<p>${value}</p>`), `<p>${expected}</p>`);
  }
});

test("html escapes quoted attribute values", () => {
  const value = `" onfocus='x' <&>`;
  const escaped = "&quot; onfocus=&#39;x&#39; &lt;&amp;&gt;";
  assert.equal(renderHtml(html`<a title="x ${value} y">`), `<a title="x ${escaped} y">`);
  assert.equal(renderHtml(html`<a title='${value}'>`), `<a title='${escaped}'>`);
  assert.equal(renderHtml(html`<a id="${1}" title="${undefined}">`), `<a id="1" title="">`);
});

test("html does not escape nested fragments again, at any depth", () => {
  const item = (text: string) => html`<li>${text}</li>`;
  const list = html`<ul>${["<1>", "2"].map(item)}</ul>`;
  const expected = "<nav><ul><li>&lt;1&gt;</li><li>2</li></ul></nav>";
  assert.equal(renderHtml(html`<nav>${list}</nav>`), expected);
});

test("html does not end a tag at a quote or > inside an attribute value", () => {
  const page = renderHtml(html`<a title="1 > '0'" id='"'>${"<"}</a>`);
  assert.equal(page, `<a title="1 > '0'" id='"'>&lt;</a>`);
});

test("html refuses a value where escaping would not make it safe", () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["unquoted value", ["<a href=", ">"]],
    ["half-quoted value", ["<a href=x", ">"]],
    ["bare in a tag", ["<a ", ">"]],
    ["attribute name", ["<a ", '="x">']],
    ["tag name", ["<", ">"]],
    ["end tag name", ["</", ">"]],
    ["script", ["<script>", "</script>"]],
    ["upper-case script", ["<SCRIPT>", "</SCRIPT>"]],
    ["style", ["<style>", "</style>"]],
    ["noscript", ["<noscript>", "</noscript>"]],
    ["iframe", ["<iframe>", "</iframe>"]],
    ["comment", ["<!-- ", " -->"]],
    ["processing instruction", ["<?", ">"]],
  ];
  for (const [name, parts] of cases) {
    assert.throws(() => fill(parts, "x"), TypeError, name);
  }
});

test("html refuses a template that does not end in text", () => {
  const cases = ["<p", "<p class=", '<p class="', "<p class='x", "<p ", "a < b", "<", "<b x=1>"];
  for (const text of cases) {
    assert.throws(() => fill([text]), TypeError, text);
  }
});

test("html refuses a fragment, an array or attributes in an attribute value", () => {
  for (const value of [html`<b></b>`, ["x"], attributes({ id: "x" })]) {
    assert.throws(() => html`<a title="${value}">`, TypeError);
  }
});

test("html refuses objects that it did not make", () => {
  const cases = [
    '{"markup":"<b>"}',
    '{"Symbol(markup)":"<b>"}',
    '{"toString":"<b>"}',
    "{}",
    "true",
    '[{"markup":"<b>"}]',
  ];
  for (const text of cases) assert.throws(() => html`<p>${fromJson(text)}</p>`, TypeError, text);
});

test("html allows only attributes() inside a tag", () => {
  assert.equal(renderHtml(html`<input${attributes({ id: "a" })}>`), '<input id="a">');
  assert.throws(() => html`<p>${attributes({ id: "a" })}</p>`, TypeError);
  assert.throws(() => html`<p ${html`<b></b>`}></p>`, TypeError);
  assert.throws(() => html`<p ${undefined}></p>`, TypeError);
});

test("attributes() escapes values, writes true as the name alone and omits false", () => {
  const given = { value: `"<'&>`, autofocus: true, hidden: false, title: undefined, size: 3 };
  assert.equal(
    renderHtml(html`<input${attributes(given)}>`),
    '<input value="&quot;&lt;&#39;&amp;&gt;" autofocus size="3">',
  );
});

test("attributes() refuses what is not an attribute name", () => {
  for (const name of ["", "a b", "a>", 'a"', "a=b", "a/b", "A", "1", "on\nload"]) {
    assert.throws(() => attributes({ [name]: "x" }), TypeError, name);
  }
});

test("styleElement() refuses a style sheet that could end the element", () => {
  assert.equal(renderHtml(styleElement("p > a { }")), "<style>p > a { }</style>");
  for (const css of ["</style>", "<!--", "p { } </STYLE "]) {
    assert.throws(() => styleElement(css), TypeError);
  }
});

test("html escapes random text so that it cannot open a tag or leave its attribute", (t) => {
  const random = openRandom(t);
  for (let round = 0; round < 10_000; round += 1) {
    const text = random.text("<>\"'&;=/ abc\u0000\n#39lt😀", 12);
    const page = renderHtml(html`<p title="${text}">${text}</p>`);
    const match = /^<p title="([^"<>']*)">([^<>"']*)<\/p>$/.exec(page);
    assert.ok(match, JSON.stringify(text));
    assert.deepEqual([match[1], match[2]].map(unescape), [text, text]);
  }
});

function unescape(escaped: string = ""): string {
  const characters: Readonly<Record<string, string>> = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
  };
  return escaped.replace(/&[^;]*;/g, (entity) => characters[entity] ?? "?");
}
