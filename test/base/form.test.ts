import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeFormText, parseForm } from "../../src/base/form.ts";
import { badForms, type FormPairs, goodForms } from "../corpus/forms.ts";

describe("parseForm() reads (RFC 6749 §3.2 and Appendix B, URL Standard §5.1)", () => {
  for (const [what, text, pairs] of goodForms) {
    test(what, () => checkForm(Buffer.from(text), pairs));
  }
});

describe("parseForm() reads in a query string (RFC 6749 §3.1)", () => {
  for (const [what, text, pairs] of goodForms) {
    if (/[^\x00-\x7f]/.test(text)) continue;
    test(what, () => checkForm(text, pairs));
  }
});

describe("parseForm() refuses (RFC 6749 Appendix B, RFC 3986 §2.1, RFC 3629 §3)", () => {
  for (const [what, body] of badForms) {
    test(what, () => assert.equal(parseForm(Buffer.from(body)), undefined));
    if (typeof body !== "string") continue;
    test(`${what}, in a query string`, () => assert.equal(parseForm(body), undefined));
  }
});

test("parseForm() refuses a query string that is not ASCII (RFC 3986 §2)", () => {
  assert.equal(parseForm("a=\u00fc"), undefined);
  assert.equal(parseForm("a=\u0080"), undefined);
  assert.equal(parseForm("a=\ud800"), undefined);
});

test("get() returns undefined for an unknown name, even for one that every object has", () => {
  const form = parseForm("a=b");
  for (const name of ["b", "", "__proto__", "constructor", "toString"]) {
    assert.equal(form?.get(name), undefined);
    assert.deepEqual(form?.getAll(name), []);
  }
});

test("the corpus holds at least 60 forms", () => {
  assert.ok(goodForms.length + badForms.length >= 60);
});

test("parseForm() takes linear time", () => {
  const before = process.cpuUsage();
  parseForm(`a=${"%41".repeat(300_000)}`);
  parseForm(`a=${"%".repeat(1_000_000)}`);
  parseForm("&".repeat(1_000_000));
  parseForm("=".repeat(1_000_000));
  assert.ok(process.cpuUsage(before).user < 2_000_000); // quadratic time would take minutes
});

test("decodeFormText() decodes a value; a bad escape is undefined (RFC 6749 Appendix B)", () => {
  assert.equal(decodeFormText("a+b%20c%2B"), "a b c+");
  assert.equal(decodeFormText("a&b=c"), "a&b=c");
  assert.equal(decodeFormText(""), "");
  assert.equal(decodeFormText("100%"), undefined);
  assert.equal(decodeFormText("%ff"), undefined);
});

/** Checks each name's value, all of its values, and the repeated names against `pairs`. */
function checkForm(input: Uint8Array | string, pairs: FormPairs): void {
  const form = parseForm(input);
  assert.ok(form !== undefined);
  const repeated: string[] = [];
  for (const name of new Set(pairs.map(([name]) => name))) {
    const values = pairs.filter((pair) => pair[0] === name).map(([, value]) => value);
    const single = values.length === 1 && values[0] !== "" ? values[0] : undefined;
    if (values.length > 1) repeated.push(name);
    assert.equal(form.get(name), single, `the value of ${JSON.stringify(name)}`);
    assert.deepEqual(form.getAll(name), values.filter((value) => value !== ""));
  }
  assert.deepEqual([...form.duplicates].sort(), repeated.sort());
}
