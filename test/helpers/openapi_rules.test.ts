import assert from "node:assert/strict";
import { test } from "node:test";
import { findOpenApiErrors } from "./openapi_rules.ts";

const ok = { description: "Good." };
const operation = (more: Record<string, unknown> = {}) => ({ responses: { 200: ok }, ...more });
const id = { name: "id", in: "path", required: true, schema: { type: "string" } };

const SOUND = {
  openapi: "3.1.1",
  info: { title: "T", version: "1" },
  servers: [{ url: "https://a.example" }],
  paths: {
    "/a": { get: operation({ operationId: "a", security: [{ token: [] }, {}] }) },
    "/a/{id}": { get: operation({ parameters: [id] }), post: operation({ parameters: [id] }) },
  },
  webhooks: { e: { post: operation() } },
  components: {
    schemas: { A: { type: "object" } },
    securitySchemes: {
      token: { type: "http", scheme: "bearer" },
      oauth2: {
        type: "oauth2",
        flows: { password: { tokenUrl: "https://a.example/t", scopes: { a: "" } } },
      },
    },
  },
};

test("findOpenApiErrors() finds nothing in a sound document", () => {
  assert.deepEqual(findOpenApiErrors(SOUND), []);
});

const paths = (more: Record<string, unknown>) => ({ ...SOUND, paths: { ...SOUND.paths, ...more } });
const get = (more: Record<string, unknown>) => paths({ "/x": { get: operation(more) } });

const BROKEN: readonly [what: string, document: unknown][] = [
  ["a document that is no object", []],
  ["another version", { ...SOUND, openapi: "3.0.3" }],
  ["no title", { ...SOUND, info: { version: "1" } }],
  ["no paths", { ...SOUND, paths: undefined }],
  ["an unknown field", { ...SOUND, swagger: "2.0" }],
  ["a path without a slash", paths({ x: { get: operation() } })],
  ["two paths that differ only in a parameter's name", paths({ "/a/{other}": {} })],
  ["an undeclared path parameter", paths({ "/x/{y}": { get: operation() } })],
  ["a path parameter that is not in the path", get({ parameters: [id] })],
  [
    "an optional path parameter",
    paths({ "/x/{id}": { get: operation({ parameters: [{ ...id, required: false }] }) } }),
  ],
  [
    "a duplicate parameter",
    get({ parameters: [1, 2].map(() => ({ name: "q", in: "query", schema: {} })) }),
  ],
  ["a parameter without a schema", get({ parameters: [{ name: "q", in: "query" }] })],
  ["an unknown method", paths({ "/x": { fetch: operation() } })],
  ["a duplicate operationId", get({ operationId: "a" })],
  ["no responses", get({ responses: {} })],
  ["an invalid status", get({ responses: { 20: ok } })],
  ["a response without a description", get({ responses: { 200: {} } })],
  ["a body without content", get({ requestBody: {} })],
  ["an invalid media type", get({ requestBody: { content: { json: {} } } })],
  [
    "a reference to nothing",
    get({ responses: { 200: { $ref: "#/components/responses/X" } } }),
  ],
  [
    "a reference with other members beside it",
    get({ responses: { 200: { $ref: "#/components/schemas/A", content: {} } } }),
  ],
  ["an unknown security scheme", get({ security: [{ nothing: [] }] })],
  ["an unknown scope", get({ security: [{ oauth2: ["b"] }] })],
  [
    "an invalid schema",
    get({ responses: { 200: { ...ok, content: { "a/b": { schema: { type: "x" } } } } } }),
  ],
  ["a duplicate tag", { ...SOUND, tags: [{ name: "a" }, { name: "a" }] }],
  [
    "a flow without its token URL",
    {
      ...SOUND,
      components: {
        securitySchemes: {
          x: { type: "oauth2", flows: { password: { scopes: {} } } },
          ...SOUND.components.securitySchemes,
        },
      },
    },
  ],
];

for (const [what, document] of BROKEN) {
  test(`findOpenApiErrors() finds ${what}`, () => {
    assert.notDeepEqual(findOpenApiErrors(document), []);
  });
}
