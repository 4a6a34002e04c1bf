/**
 * Checks our API documents with tools of others: AsyncAPI's own JSON Schema, and a generator of
 * TypeScript types, with which a program is compiled.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startServer } from "../../test/helpers/process.ts";
import type { PackageLoader } from "./packages.ts";

/** The tools. */
export const DOCUMENT_TOOLS = [
  { name: "@asyncapi/specs", major: 6 },
  { name: "ajv", major: 8 },
  { name: "openapi-typescript", major: 7 },
] as const;

/** The part of ajv 8 that is used here. */
interface Ajv {
  readonly default: new (options: object) => {
    validate(schema: object, value: unknown): boolean;
    errorsText(): string;
  };
}

/** The part of openapi-typescript 7 that is used here. */
interface OpenApiTypescript {
  default(document: object): Promise<unknown[]>;
  astToString(nodes: unknown[]): string;
}

const MODULE = `
const product = {
  type: "object",
  properties: { id: { type: "integer" }, name: { type: "string", minLength: 1 } },
  required: ["id", "name"],
  additionalProperties: false,
};
const id = { type: "object", properties: { id: { type: "integer", minimum: 1 } } };

export const getProduct = {
  method: "GET",
  path: "/v1/products/:id",
  public: true,
  summary: "One product",
  input: { params: id },
  output: product,
  limit: { rate: "100/1m" },
  handle: ({ params }) => ({ id: params.id, name: "Lamp" }),
};
export const listProducts = {
  method: "GET",
  path: "/v1/products{.:format}?",
  public: true,
  input: {
    query: {
      type: "object",
      properties: { q: { type: "string" }, limit: { type: "integer", default: 10 } },
      required: ["q"],
    },
  },
  output: { type: "array", items: product },
  handle: () => [],
};
export const addProduct = {
  method: "POST",
  path: "/v1/products",
  public: true,
  accepts: ["json", "form"],
  input: { body: { type: "object", properties: { name: product.properties.name } } },
  output: product,
  emits: {
    "product.added": { description: "A product", schema: product, example: { id: 1, name: "A" } },
    "product:gone": "A product is no more",
    "product_gone": { description: "Another event", example: null },
  },
  handle: ({ body }) => ({ status: 201, body: { id: 1, name: body.name } }),
};
export const file = { method: "GET", path: "/v1/files/*", public: true, handle: () => undefined };
`;

const PROGRAM = `
import type { operations, paths, webhooks } from "./openapi.d.ts";

type Json<Message> = Message extends { content: { "application/json": infer Value } } ? Value
  : never;
type Get = operations["get_v1_products_id"];

export const parameters: Get["parameters"]["path"] = { id: 1 };
// @ts-expect-error: a number it is
export const noParameters: Get["parameters"]["path"] = { id: "1" };
export const query: paths["/v1/products"]["get"]["parameters"]["query"] = { q: "lamp" };
// @ts-expect-error: q is needed
export const noQuery: paths["/v1/products"]["get"]["parameters"]["query"] = { limit: 1 };
export const product: Json<Get["responses"][200]> = { id: 1, name: "Lamp" };
// @ts-expect-error: it has a name
export const noProduct: Json<Get["responses"][200]> = { id: 1 };
export const added: Json<operations["post_v1_products"]["responses"][201]> = product;
export const list: Json<paths["/v1/products.{format}"]["get"]["responses"][200]> = [product];
export const limit: Get["responses"][429]["headers"]["RateLimit"] = "";
export const body: Json<operations["post_v1_products"]["requestBody"]> = { name: "Lamp" };
type Added = NonNullable<webhooks["product.added"]["post"]["requestBody"]>;
export const event: Json<Added> = product;
// @ts-expect-error: not any data
export const noEvent: Json<Added> = "product";
`;

const TSC = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url));

/** Starts a server of its own; rejects with the errors that a tool finds in its documents. */
export async function tryDocuments(load: PackageLoader, folder: string): Promise<void> {
  const data = join(folder, "documents");
  const endpoints = join(data, "endpoints");
  await mkdir(endpoints, { recursive: true });
  await writeFile(join(endpoints, "products.mjs"), MODULE);
  const env = { GATEPOST_ENDPOINTS: endpoints, GATEPOST_ADMIN_PASSWORD: "documents alone" };
  const server = await startServer({ env, folder: data });
  try {
    tryAsyncApi(load, await readDocument(`${server.url}/asyncapi.json`));
    await tryOpenApi(load, await readDocument(`${server.url}/openapi.json`), data);
  } finally {
    await server.stop();
  }
}

async function readDocument(url: string): Promise<object> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
  assert.equal(response.status, 200);
  const document: object = JSON.parse(await response.text());
  return document;
}

function tryAsyncApi(load: PackageLoader, document: object): void {
  const { default: Ajv } = load<Ajv>("ajv");
  const { schemas } = load<{ readonly schemas: Readonly<Record<string, object>> }>(
    "@asyncapi/specs",
  );
  const schema = schemas["3.0.0"];
  assert.ok(schema);
  // The schema has its own copy of the meta-schema, and ajv has formats in another package.
  const off = { strict: false, meta: false, validateSchema: false, validateFormats: false };
  const ajv = new Ajv(off);
  assert.ok(ajv.validate(schema, document), `asyncapi.json: ${ajv.errorsText()}`);
  assert.ok(!ajv.validate(schema, { ...document, channels: [] }), "the schema takes anything");
}

async function tryOpenApi(load: PackageLoader, document: object, folder: string): Promise<void> {
  const { default: generate, astToString } = load<OpenApiTypescript>("openapi-typescript");
  await writeFile(join(folder, "openapi.d.ts"), astToString(await generate(document)));
  const program = join(folder, "program.ts");
  await writeFile(program, PROGRAM);
  const options = ["--noEmit", "--strict", "--allowImportingTsExtensions", "--types", ""];
  await promisify(execFile)(TSC, ["--ignoreConfig", ...options, program])
    .catch(({ stdout }: { readonly stdout: string }) => assert.fail(`openapi.json: ${stdout}`));
}
