import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FieldError } from "../../src/base/problem.ts";
import { checkData, errorLine } from "../../src/hosting/check_data.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";
import { schemaOf } from "../../src/hosting/schemas.ts";

const OBJECT = { type: "object" };
const standard = (validate: (value: unknown) => unknown) =>
  ({ "~standard": { version: 1, vendor: "v", validate } });

function reasonsOf(fields: Readonly<Record<string, unknown>>): string[] {
  const errors: FieldError[] = [];
  const endpoint = { method: "POST", path: "/a/:id/*", public: true, handle() {}, ...fields };
  checkEndpoint(endpoint, { file: "a.ts", exportName: "a" }, errors);
  return errors.map(errorLine);
}

describe("an endpoint with schemas loads:", () => {
  const params = { ...OBJECT, properties: { id: {}, 0: {} } };
  const cases: Readonly<Record<string, unknown>>[] = [
    { input: {} },
    { input: { params: { ...params, required: ["id", "0"] } } },
    { input: { params, query: OBJECT, body: {} }, output: { type: "string" } },
    { input: { query: standard(String), body: Object.assign(() => {}, standard(String)) } },
    { accepts: ["json", "form"], input: { body: OBJECT } },
    { emits: { a: { description: "A", schema: { type: "integer" }, example: 1 } } },
    { emits: { a: { description: "A", example: { any: ["thing"] } } } },
  ];
  for (const fields of cases) {
    test(JSON.stringify(fields), () => assert.deepEqual(reasonsOf(fields), []));
  }
});

describe("wrong schemas prevent the start, with a line for each error:", () => {
  const meaning = "its body has no meaning (RFC 9110 §9.3).";
  const event = (more: object) => ({ emits: { a: { description: "A", ...more } } });
  const cases: [fields: Readonly<Record<string, unknown>>, reasons: string[]][] = [
    [{ input: [] }, ["/input Must be an object."]],
    [{ input: { headers: {} } }, ["/input/headers Unknown member."]],
    [{ input: { query: { type: "array" } } }, ['/input/query Must have type: "object".']],
    [{ input: { query: {}, params: { typ: 1 } } }, [
      "/input/params/typ Unknown member.",
      '/input/params Must have type: "object".',
      '/input/query Must have type: "object".',
    ]],
    [{ input: { params: { ...OBJECT, properties: { idd: {} } } } }, [
      "/input/params/properties/idd Is not a parameter of the path.",
    ]],
    [{ input: { params: { ...OBJECT, properties: { more: {} }, required: ["id", "0", "b"] } } }, [
      "/input/params/properties/more Is not a parameter of the path.",
      "/input/params/required/2 Is not a parameter of the path.",
    ]],
    [{ input: { body: 1 } }, ["/input/body Must be a JSON Schema or a Standard Schema."]],
    [{ method: "GET", input: { body: {} } }, [`/input/body Not for GET: ${meaning}`]],
    [{ method: "DELETE", input: { body: {} } }, [`/input/body Not for DELETE: ${meaning}`]],
    [{ output: { minLength: "1" } }, ["/output/minLength Must be a whole number."]],
    [event({ schema: { items: 1 } }), ["/emits/a/schema/items Must be a schema."]],
    [event({ schema: { type: "integer" }, example: "1" }), [
      '/emits/a/example The event\'s data is not valid: / Must be an integer.',
    ]],
    [event({ example: 1n }), [
      '/emits/a/example Do not know how to serialize a BigInt',
    ]],
    [event({ schema: standard(async () => ({ value: 1 })), example: 1 }), [
      '/emits/a/example The schema of an event must be synchronous.',
    ]],
  ];
  for (const [fields, reasons] of cases) {
    test(reasons.join(), () => assert.deepEqual(reasonsOf(fields), reasons));
  }
});

test("checkData() returns the data that its schema makes, or throws all errors", async () => {
  const shapeOf = (schema: unknown) => schemaOf("output").parse(schema, assert.fail);
  const order = shapeOf({ ...OBJECT, properties: { n: { type: "integer" }, m: { default: 1 } } });
  assert.deepEqual(checkData(order, { n: 2 }), { n: 2, m: 1 });
  assert.throws(() => checkData(order, { n: "x" }), {
    name: "TypeError",
    message: "The event's data is not valid:\n/n Must be an integer.",
  });
  const lists = shapeOf({ ...OBJECT, additionalProperties: { items: { type: "integer" } } });
  assert.throws(() => checkData(lists, { ["n".repeat(60_000)]: Array(100).fill("x") }), (error) =>
    String(error).length < 70_000
  );
  const later = shapeOf(standard(() => Promise.reject(new Error("later"))));
  assert.throws(() => checkData(later, 1), /^TypeError: The schema of an event must be sync/);
  assert.equal(checkData(shapeOf(standard(() => ({ value: 7 }))), 1), 7);
});
