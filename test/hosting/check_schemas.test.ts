import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkData } from "../../src/hosting/check_data.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";
import { checkSchema } from "../../src/hosting/check_schemas.ts";

const OBJECT = { type: "object" };
const standard = (validate: (value: unknown) => unknown) =>
  ({ "~standard": { version: 1, vendor: "v", validate } });

function reasonsOf(fields: Readonly<Record<string, unknown>>): string[] {
  const reasons: string[] = [];
  const endpoint = { method: "POST", path: "/a/:id/*", public: true, handle() {}, ...fields };
  checkEndpoint(endpoint, { file: "a.ts", exportName: "a" }, reasons);
  return reasons;
}

describe("an endpoint with schemas loads:", () => {
  const params = { ...OBJECT, properties: { id: {}, 0: {} } };
  const cases: Readonly<Record<string, unknown>>[] = [
    { input: {} },
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

describe("wrong schemas stop the start, each with a line:", () => {
  const meaning = "its body has no meaning (RFC 9110 §9.3)";
  const event = (more: object) => ({ emits: { a: { description: "A", ...more } } });
  const cases: [fields: Readonly<Record<string, unknown>>, reasons: string[]][] = [
    [{ input: [] }, ["input must be an object of schemas: { params?, query?, body? }"]],
    [{ input: { headers: {} } }, ['"headers" is not a field of input']],
    [{ input: { query: { type: "array" } } }, ['input.query must have type: "object"']],
    [{ input: { query: {}, params: { typ: 1 } } }, [
      'input.params has "typ", which is not taken of JSON Schema; did you mean "type"?',
      'input.params must have type: "object"',
      'input.query must have type: "object"',
    ]],
    [{ input: { params: { ...OBJECT, properties: { idd: {} } } } }, [
      'input.params.properties["idd"] is not a parameter of the path',
    ]],
    [{ input: { body: 1 } }, ["input.body must be a JSON Schema or a Standard Schema"]],
    [{ method: "GET", input: { body: {} } }, [`input.body is not for GET: ${meaning}`]],
    [{ method: "DELETE", input: { body: {} } }, [`input.body is not for DELETE: ${meaning}`]],
    [{ output: { minLength: "1" } }, ["output.minLength must be a whole number"]],
    [event({ schema: { items: 1 } }), ['emits["a"].schema.items must be a schema']],
    [event({ schema: { type: "integer" }, example: "1" }), [
      'emits["a"].example: The event\'s data is not valid:\n/ Must be an integer.',
    ]],
    [event({ example: 1n }), [
      'emits["a"].example: Do not know how to serialize a BigInt',
    ]],
    [event({ schema: standard(async () => ({ value: 1 })), example: 1 }), [
      'emits["a"].example: The schema of an event must be synchronous.',
    ]],
  ];
  for (const [fields, reasons] of cases) {
    test(reasons.join(), () => assert.deepEqual(reasonsOf(fields), reasons));
  }
});

test("checkData() returns the data as its schema has it, or throws every error", async () => {
  const shapeOf = (schema: unknown) => {
    const shape = checkSchema(schema, "schema", "output", []);
    assert.ok(shape);
    return shape;
  };
  const order = shapeOf({ ...OBJECT, properties: { n: { type: "integer" }, m: { default: 1 } } });
  assert.deepEqual(checkData(order, { n: 2 }), { n: 2, m: 1 });
  assert.throws(() => checkData(order, { n: "x" }), {
    name: "TypeError",
    message: "The event's data is not valid:\n/n Must be an integer.",
  });
  const later = shapeOf(standard(() => Promise.reject(new Error("later"))));
  assert.throws(() => checkData(later, 1), /^TypeError: The schema of an event must be sync/);
  assert.equal(checkData(shapeOf(standard(() => ({ value: 7 }))), 1), 7);
});
