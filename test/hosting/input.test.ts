import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import { createInputReader } from "../../src/hosting/input.ts";
import { loadedEndpoint } from "../helpers/hosting.ts";
import { sampleRequest } from "../helpers/http_request.ts";

interface Sent {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: string | undefined;
  readonly type?: string | undefined;
}

const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";
const OBJECT = { type: "object" };
const INTEGER = { type: "integer" };

const standard = (validate: (value: unknown) => unknown) =>
  ({ "~standard": { version: 1, vendor: "v", validate } });
const objectOf = (properties: object, more: object = {}) => ({ ...OBJECT, properties, ...more });

/** Reads a request as an endpoint with these fields does. */
async function read(fields: Readonly<Record<string, unknown>>, sent: Sent = {}, again = () => {}) {
  const { params = {}, query = "", body, type = JSON_TYPE } = sent;
  const endpoint = loadedEndpoint({
    method: "POST",
    path: "/orders/:id/:more?",
    public: true,
    handle() {},
    ...fields,
  });
  const headers = body === undefined
    ? {}
    : { "content-type": type, "content-length": String(Buffer.byteLength(body)) };
  const request = sampleRequest({ method: "POST", query, headers, body: body ?? "" });
  const limits = { maxBytes: 1_000_000, maxFormBytes: 65_536 };
  return await createInputReader(endpoint, limits)(request, params, async () => again());
}

/** How an endpoint with these fields refuses a request: the problem's status, and its errors. */
async function refusal(fields: Readonly<Record<string, unknown>>, sent: Sent): Promise<unknown[]> {
  try {
    await read(fields, sent);
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return [error.status, error.message, ...error.errors.map(({ pointer, detail }) =>
      `${pointer} ${detail}`)];
  }
  return assert.fail("not refused");
}

test("params, query and body become what their schemas make of them", async () => {
  const input = {
    params: objectOf({ id: INTEGER }),
    query: objectOf({ limit: { type: "integer", default: 10 }, q: { type: "string" } }),
    body: objectOf({ item: { enum: ["lamp"] }, count: { type: "integer", default: 1 } }),
  };
  const { params, query, body } = await read({ input }, {
    params: { id: "7", more: "x" },
    query: "q=",
    body: '{"item":"lamp"}',
  });
  assert.deepEqual(params, { id: 7, more: "x" });
  assert.deepEqual(query, { q: "", limit: 10 });
  assert.deepEqual(body, { item: "lamp", count: 1 });
});

test("without schemas everything stays as it was received", async () => {
  const params = { id: "7" };
  const input = await read({}, { params, query: "a=1", body: "[1]" });
  assert.equal(input.params, params);
  assert.deepEqual([input.query, input.body], [undefined, [1]]);
  const other = await read({ input: { query: OBJECT } }, { params, body: "x", type: "text/plain" });
  assert.deepEqual([other.params, other.query, other.body], [params, {}, undefined]);
});

describe("a text in a query becomes what its schema says:", () => {
  const rows: [schema: unknown, query: string, value: unknown][] = [
    [INTEGER, "a=-7", -7], [{ type: "number" }, "a=1.5e1", 15],
    [{ type: ["number", "null"] }, "a=0", 0], [{ type: "boolean" }, "a=false", false],
    [{ enum: [1, 2] }, "a=2", 2], [{ const: true }, "a=true", true],
    [{ anyOf: [INTEGER, { type: "boolean" }] }, "a=true", true],
    [{ type: ["string", "integer"] }, "a=7", "7"], [{ type: "string" }, "a=", ""], [{}, "a=1", "1"],
    [{ type: "array", items: INTEGER }, "a=1&a=2", [1, 2]], [{ type: "array" }, "a=1", ["1"]],
    [{ type: "string", format: "date" }, "a=2030-01-31", "2030-01-31"],
    [{ anyOf: [INTEGER, { const: "all" }] }, "a=5", 5],
    [{ anyOf: [INTEGER, { const: "all" }] }, "a=all", "all"],
    [{ anyOf: [INTEGER, { type: "string", format: "date" }] }, "a=5", 5],
    [{ enum: [1, true, "all"] }, "a=1", 1], [{ enum: [1, true, "all"] }, "a=true", true],
    [{ type: ["string", "integer"], enum: ["all", 1] }, "a=1", 1],
    [{ type: "array", items: { enum: [1, "x"] } }, "a=1&a=x", [1, "x"]],
    [{ anyOf: [INTEGER, { type: "array", items: INTEGER }] }, "a=5", 5],
    [{ anyOf: [INTEGER, { type: "array", items: INTEGER }] }, "a=5&a=6", [5, 6]],
    [{ type: "array", items: INTEGER, anyOf: [{ minItems: 1 }] }, "a=5", [5]],
    [{ anyOf: [{}] }, "a=5", "5"],
    [{ type: "integer", anyOf: [{ minimum: 3 }, { maximum: 1 }] }, "a=5", 5],
    [{ enum: [1, 5], anyOf: [{ minimum: 3 }, { maximum: 0 }] }, "a=5", 5],
    [{ type: "array", uniqueItems: true }, "a=x&a=y", ["x", "y"]],
    [{ type: "array", items: INTEGER, uniqueItems: true }, "a=1&a=2", [1, 2]],
    [{ type: "array", uniqueItems: true, anyOf: [{ minItems: 1 }] }, "a=x&a=y", ["x", "y"]],
    [{ type: "array", enum: [["x"], ["x", "y"]] }, "a=x&a=y", ["x", "y"]],
    [{ type: "array", items: INTEGER, const: [1, 2] }, "a=1&a=2", [1, 2]],
    [{ minimum: 5, anyOf: [INTEGER, { const: "all" }] }, "a=all", "all"],
    [{ maxItems: 2, anyOf: [{ type: "array" }, INTEGER] }, "a=1&a=2", ["1", "2"]],
  ];
  for (const [schema, query, a] of rows) {
    test(`${query} by ${JSON.stringify(schema)}`, async () => {
      const input = await read({ input: { query: objectOf({ a: schema }) } }, { query });
      assert.deepEqual(input.query, { a });
    });
  }
  const wrong: [schema: unknown, query: string, errors: string[]][] = [
    [INTEGER, "a=", ["/a Must be an integer."]], [INTEGER, "a=07", ["/a Must be an integer."]],
    [INTEGER, "a=9007199254740993", ["/a Must be an integer."]],
    [{ type: "number" }, "a=1e999", ["/a Must be a number."]],
    [{ type: "boolean" }, "a=1", ["/a Must be true or false."]],
    [{ type: "string" }, "a=1&a=1", ["/a Must be given once."]],
    [{ type: "array", items: INTEGER }, "a=1&a=x", ["/a/1 Must be an integer."]],
    [{ enum: [1, 2] }, "a=3", ["/a Must be one of: 1, 2."]],
    [{ type: "integer", enum: [1, 2] }, "a=3", ["/a Must be one of: 1, 2."]],
    [{ anyOf: [INTEGER, { const: "all" }] }, "a=x", ["/a Must be one of: all."]],
    [INTEGER, "a=1&a=2", ["/a Must be given once."]],
    [{ type: "array", uniqueItems: true }, "a=x&a=y&a=x", ["/a/2 Must be unique."]],
    [{ type: "array", items: { type: "number" }, uniqueItems: true }, "a=1&a=1.0", [
      "/a/1 Must be unique.",
    ]],
    [{ type: "array", items: INTEGER, uniqueItems: true }, "a=x&a=y", [
      "/a/0 Must be an integer.", "/a/1 Must be an integer.",
    ]],
    [{ type: "array", enum: [["x"], ["y"]] }, "a=z", ['/a Must be one of: ["x"], ["y"].']],
    [{ minimum: 5, anyOf: [INTEGER, { type: "null" }] }, "a=1", ["/a Must be at least 5."]],
    [{ maxLength: 3, anyOf: [{ pattern: "^a" }, { pattern: "^b" }] }, "a=abcd", [
      "/a Must have at most 3 characters.",
    ]],
    [{ maxItems: 1, anyOf: [{ type: "array" }, INTEGER] }, "a=1&a=2", [
      "/a Must have at most 1 items.",
    ]],
    [{ minimum: 5, anyOf: [INTEGER, { const: true }] }, "a=x", ["/a Must be one of: true."]],
  ];
  for (const [schema, query, errors] of wrong) {
    test(`${query} is refused by ${JSON.stringify(schema)}`, async () => {
      assert.deepEqual(await refusal({ input: { query: objectOf({ a: schema }) } }, { query }), [
        400, "The query is not valid; see errors.", ...errors,
      ]);
    });
  }
});

test("names in a query that are also properties of prototypes are ordinary names", async () => {
  const query = objectOf({ a: INTEGER }, { additionalProperties: INTEGER });
  const { query: read1 } = await read({ input: { query } }, { query: "__proto__=1&constructor=2" });
  assert.deepEqual(Object.entries(Object(read1)), [["__proto__", 1], ["constructor", 2]]);
});

test("a member that no schema describes may be repeated, as an array of texts", async () => {
  const query = objectOf({ any: {}, a: INTEGER });
  const asked = "any=1&any=2&a=3&utm=x&utm=y";
  for (const more of [{}, { additionalProperties: true }]) {
    const read1 = await read({ input: { query: { ...query, ...more } } }, { query: asked });
    assert.deepEqual(read1.query, { any: ["1", "2"], a: 3, utm: ["x", "y"] });
  }
  const form = { accepts: ["form"], input: { body: objectOf({}) } };
  const { body } = await read(form, { body: "b=1&b=2", type: FORM_TYPE });
  assert.deepEqual(body, { b: ["1", "2"] });
  const strict = { ...query, additionalProperties: false };
  assert.deepEqual(await refusal({ input: { query: strict } }, { query: "b=1&b=2" }), [
    400, "The query is not valid; see errors.", "/b Unknown member.",
  ]);
});

test("all errors of a request are listed at once, each with its part", async () => {
  const input = {
    params: objectOf({ id: INTEGER }),
    query: objectOf({ id: INTEGER }, { additionalProperties: false }),
    body: objectOf({ id: INTEGER }, { required: ["id"] }),
  };
  assert.deepEqual(await refusal({ input }, { params: { id: "x" }, query: "ID=1", body: "{}" }), [
    400,
    "The request is not valid; see errors.",
    "/id In the path: Must be an integer.",
    "/ID In the query: Unknown member.",
    "/id In the body: Is required.",
  ]);
  assert.deepEqual(await refusal({ input }, { params: { id: "x" }, body: '{"id":1}' }), [
    400, "The path is not valid; see errors.", "/id Must be an integer.",
  ]);
  const many = JSON.stringify(Array(200).fill(0));
  const texts = { ...OBJECT, required: ["a"] };
  const all = { query: texts, body: { items: { type: "string" } } };
  assert.equal((await refusal({ input: all }, { body: many })).length, 2 + 100);
});

test("the listed errors have a limited size, however long a request's names are", async () => {
  const name = "n".repeat(20_000);
  const lists = { ...OBJECT, additionalProperties: { items: INTEGER } };
  const body = JSON.stringify({ [name]: Array(200).fill("x") });
  const [, , ...errors] = await refusal({ input: { body: lists } }, { body });
  assert.deepEqual(errors, [0, 1, 2].map((at) => `/${name}/${at} Must be an integer.`));
  const longer = JSON.stringify({ [name.repeat(10)]: ["x", "x"] });
  assert.equal((await refusal({ input: { body: lists } }, { body: longer })).length, 2 + 1);
});

test("a missing body is an error, unless a library's schema accepts it", async () => {
  for (const body of [undefined, ""]) {
    assert.deepEqual(await refusal({ input: { body: {} } }, { body }), [
      400, "The body is not valid; see errors.", " Is required.",
    ]);
  }
  const body = standard((value) => ({ value: value ?? "none" }));
  assert.equal((await read({ input: { body } })).body, "none");
});

test("a body of a type that is not accepted gets 415", async () => {
  const refused = async (fields: object, type: string): Promise<unknown[]> =>
    await refusal({ ...fields }, { body: "a=1", type });
  const json = [415, "Send the body as application/json."];
  assert.deepEqual(await refused({}, FORM_TYPE), json);
  assert.deepEqual(await refused({ accepts: ["json"] }, FORM_TYPE), json);
  assert.deepEqual(await refused({ input: { body: {} } }, FORM_TYPE), json);
  assert.deepEqual(await refused({ input: { body: {} } }, "text/plain"), json);
  assert.deepEqual(await refused({ accepts: ["form"], input: { body: {} } }, "text/plain"), [
    415, "Send the body as application/json or application/x-www-form-urlencoded.",
  ]);
  assert.equal((await read({}, { body: "a", type: "text/plain" })).body, undefined);
});

test("a form that is accepted is checked as an object of texts", async () => {
  const fields = { accepts: ["form"], input: { body: objectOf({ n: INTEGER, tags: {
    type: "array",
  } }) } };
  const form = { body: "n=1&tags=a&more=x", type: FORM_TYPE };
  assert.deepEqual((await read(fields, form)).body, { n: 1, tags: ["a"], more: "x" });
  assert.deepEqual(await refusal(fields, { body: '{"n":"1"}' }), [
    400, "The body is not valid; see errors.", "/n Must be an integer.",
  ]);
  const { body } = await read({ accepts: ["form"] }, { body: "a=1", type: FORM_TYPE });
  assert.ok(body instanceof URLSearchParams);
});

test("a form becomes what the alternative that fits makes of it", async () => {
  const body = { ...OBJECT, properties: { tags: { type: "array" } }, anyOf: [
    objectOf({ kind: { const: "a" }, n: INTEGER }, { required: ["kind", "n"] }),
    objectOf({ kind: { const: "b" }, n: { type: "boolean" } }, { required: ["kind"] }),
  ] };
  const fields = { accepts: ["form"], input: { body } };
  for (const [sent, made] of [
    ["kind=a&n=1&tags=x&more=y", { kind: "a", n: 1, tags: ["x"], more: "y" }],
    ["kind=b&n=true", { kind: "b", n: true }],
  ]) {
    assert.deepEqual((await read(fields, { body: String(sent), type: FORM_TYPE })).body, made);
  }
});

test("a default in a query is a value, and is not converted from text", async () => {
  const { query } = await read({
    input: { query: objectOf({ a: { type: "array", default: [1] }, b: { default: ["x"] } }) },
  });
  assert.deepEqual(query, { a: [1], b: ["x"] });
  const text = { query: objectOf({ a: { type: "integer", default: "5" } }) };
  await assert.rejects(read({ input: text }), ({ message }) => message.includes("/a/default"));
});

test("a library's schema gets texts, and may be asynchronous", async () => {
  const seen: unknown[] = [];
  const schema = standard(async (value) => {
    seen.push(value);
    return { value: { n: 7 } };
  });
  const input = { params: schema, query: schema, body: schema };
  const { params, query, body } = await read({ accepts: ["form"], input }, {
    params: { id: "1" },
    query: "a=1&b=2&b=3",
    body: "c=4",
    type: FORM_TYPE,
  });
  assert.deepEqual([params, query, body], [{ n: 7 }, { n: 7 }, { n: 7 }]);
  assert.deepEqual(seen, [{ id: "1" }, { a: "1", b: ["2", "3"] }, { c: "4" }]);
});

test("an error that a library's schema throws is not changed", async () => {
  const thrown = new Error("broken");
  const body = standard(() => { throw thrown; });
  await assert.rejects(read({ input: { body } }, { body: "1" }), thrown);
});

test("a malformed query is refused if it has a schema", async () => {
  for (const query of ["a=%", "a=%FF"]) {
    assert.deepEqual(await refusal({ input: { query: OBJECT } }, { query }), [
      400, "The query is not well-formed.",
    ]);
  }
});

test("the token is checked again when the body has come, before the body's schema", async () => {
  const ended = new Error("ended");
  const again = () => { throw ended; };
  await assert.rejects(read({ input: { body: INTEGER } }, { body: '"x"' }, again), ended);
});
