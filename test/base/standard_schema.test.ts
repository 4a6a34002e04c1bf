import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "../../src/base/problem.ts";
import { reportTo } from "../../src/base/shape.ts";
import { fromStandard, standardOf } from "../../src/base/standard_schema.ts";

/** The `~standard` of a library's schema. */
function standard(validate: (value: unknown) => unknown, jsonSchema?: unknown) {
  const found = standardOf({ "~standard": { version: 1, vendor: "v", validate, jsonSchema } });
  assert.ok(found);
  return found;
}

const refuse = (issues: unknown) => standard(() => ({ issues }));

async function errorsOf(schema: ReturnType<typeof standard>): Promise<FieldError[]> {
  const errors: FieldError[] = [];
  await fromStandard(schema, "input").parse(1, reportTo(errors));
  return errors;
}

test("standardOf() accepts an object or a function with version 1, and nothing else", () => {
  const own = { version: 1, vendor: "v", validate: () => ({ value: 1 }) };
  assert.equal(standardOf({ "~standard": own }), own);
  assert.equal(standardOf(Object.assign(() => {}, { "~standard": own })), own);
  const others = [null, "x", {}, () => {}, { "~standard": null }, { "~standard": {} }];
  for (const other of [...others, { "~standard": { ...own, version: 2 } }]) {
    assert.equal(standardOf(other), undefined);
  }
});

test("parse() returns the library's value, or a promise of it", async () => {
  const report = () => assert.fail("reported");
  const now = standard((value) => ({ value: [value] }));
  assert.deepEqual(fromStandard(now, "input").parse(1, report), [1]);
  const later = standard(async (value) => ({ value: [value], issues: undefined }));
  const parsed = fromStandard(later, "input").parse(1, report);
  assert.ok(parsed instanceof Promise);
  assert.deepEqual(await parsed, [1]);
});

test("validate() is called as a method", () => {
  const schema = { version: 1, kept: 7, validate() { return { value: this.kept }; } };
  const own = standardOf({ "~standard": schema });
  assert.equal(own && fromStandard(own, "input").parse(1, () => {}), 7);
});

test("parse() reports issues as errors with pointers, 100 at most", async () => {
  const issues = [
    { message: "a" },
    { message: "b", path: ["a/b", 0, { key: "~" }] },
    { message: "c", path: [{ key: 1 }, Symbol("s")] },
  ];
  assert.deepEqual(await errorsOf(refuse(issues)), [
    { pointer: "", detail: "a" },
    { pointer: "/a~1b/0/~0", detail: "b" },
    { pointer: "/1/Symbol(s)", detail: "c" },
  ]);
  assert.equal((await errorsOf(refuse([]))).length, 1);
  const own = Object.assign([{ message: "a" }], { issues: [{ message: "b" }] });
  assert.deepEqual(await errorsOf(standard(() => own)), [{ pointer: "", detail: "b" }]);
  const many = Array.from({ length: 1_000 }, () => ({ message: "x" }));
  assert.equal((await errorsOf(refuse(many))).length, 100);
});

test("parse() throws what validate() throws, and a TypeError for no result", async () => {
  const thrown = new RangeError("broken");
  const broken = standard(() => { throw thrown; });
  assert.throws(() => fromStandard(broken, "input").parse(1, () => {}), thrown);
  await assert.rejects(errorsOf(standard(async () => { throw thrown; })), thrown);
  for (const result of [1, undefined, {}, []]) {
    const shape = fromStandard(standard(() => result), "input");
    assert.throws(() => shape.parse(1, () => {}), TypeError);
  }
});

test("the schema for documents is the library's for input or output, else empty", () => {
  const converters = {
    input: (options: unknown) => ({ $schema: "x", type: "string", options }),
    output: () => ({ type: "number" }),
  };
  const schema = standard(() => {}, converters);
  assert.deepEqual(fromStandard(schema, "input").schema, {
    type: "string",
    options: { target: "draft-2020-12" },
  });
  assert.deepEqual(fromStandard(schema, "output").schema, { type: "number" });
  const unclear = [
    undefined,
    {},
    { input: () => { throw new Error("a date"); } },
    { input: () => undefined },
    { input: () => ({ items: { $ref: "#/$defs/a" }, $defs: {} }) },
  ];
  for (const jsonSchema of unclear) {
    assert.deepEqual(fromStandard(standard(() => {}, jsonSchema), "input").schema, {});
  }
});

test("the schema for documents replaces references by what they name", () => {
  const documentOf = (whole: object) =>
    fromStandard(standard(() => {}, { input: () => whole }), "input").schema;
  const item = { type: "object", properties: { id: { type: "number" } } };
  const $defs = { "Item/1": item, List: { items: { $ref: "#/$defs/Item~11" } } };
  assert.deepEqual(documentOf({ $ref: "#/$defs/Item~11", $defs }), item);
  assert.deepEqual(
    documentOf({ properties: { a: { $ref: "#/$defs/List", title: "A" }, $ref: {} }, $defs }),
    { properties: { a: { items: item, title: "A" }, $ref: {} } },
  );

  // A schema that contains itself accepts anything there.
  const tree = { properties: { next: { $ref: "#" } } };
  assert.deepEqual(documentOf(tree), { properties: { next: {} } });
  const node = { properties: { next: { $ref: "#/$defs/node" } } };
  assert.deepEqual(documentOf({ $ref: "#/$defs/node", $defs: { node } }), {
    properties: { next: {} },
  });

  // Each refers to the next one twice.
  const doubled = Object.fromEntries(Array.from({ length: 40 }, (_, at) => {
    const $ref = `#/$defs/d${at + 1}`;
    return [`d${at}`, { anyOf: [{ $ref }, { $ref }] }];
  }));
  const from = (at: number) =>
    documentOf({ $ref: `#/$defs/d${at}`, $defs: { ...doubled, d40: {} } });
  assert.deepEqual(from(0), {});
  assert.deepEqual(from(29), {}, "2,048 copies of the last have more than 10,000 parts");
  assert.equal(JSON.stringify(from(30)).match(/{}/g)?.length, 1_024);
  assert.deepEqual(documentOf({ $ref: "https://example.com/schema" }), {});
});
