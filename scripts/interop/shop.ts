import assert from "node:assert/strict";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asFields, lookUp } from "../../test/helpers/openapi_rules.ts";
import { CLI_ENTRY, runNode, startServer } from "../../test/helpers/process.ts";
import { installPackages, type PackageLoader } from "./packages.ts";

const PASSWORD = "nobody needs to know it";
const ROOT = join(import.meta.dirname, "../..");

/** An endpoint with schemas of zod, which is installed for the shop alone. */
const ZOD_MODULE = `
import { z } from "zod";
import { endpoint } from "./lib/endpoint.ts";

export const quote = endpoint({
  method: "POST",
  path: "/shop/quotes",
  public: true,
  input: {
    body: z.object({
      sku: z.string().trim().min(1),
      counts: z.array(z.number().int()).default([1]),
    }),
  },
  output: z.object({ sku: z.string(), count: z.number() }),
  handle: ({ body: { sku, counts } }) => ({ sku, count: counts.reduce((a, b) => a + b, 0) }),
});
`;

/**
 * Serves a copy of the shop (scripts/demo/shop) with packages of its own, under Node's permission
 * model, and calls it; rejects with the first error.
 */
export async function tryShop(
  load: PackageLoader,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const [shop, data] = [join(folder, "shop"), join(folder, "data")];
  await mkdir(shop);
  await mkdir(data);
  await installPackages(shop, ["zod@4"], signal);
  await cp(join(ROOT, "scripts/demo/shop"), shop, { recursive: true });
  await writeFile(join(shop, "quotes.ts"), ZOD_MODULE);
  const server = await startServer({
    entry: CLI_ENTRY,
    args: ["serve", "--locked"],
    folder: data,
    env: {
      GATEPOST_ENDPOINTS: shop,
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      SHOP_DATABASE: join(data, "shop.db"),
    },
  });
  try {
    await trySchema(server.url);
    await tryTypes(server.url, load, join(folder, "client"));
  } finally {
    await server.stop();
  }
}

async function trySchema(url: string): Promise<void> {
  const good = await post(`${url}/shop/quotes`, { sku: " lamp " });
  assert.deepEqual(good, { status: 200, text: '{"sku":"lamp","count":1}' });
  const { status, text } = await post(`${url}/shop/quotes`, { sku: "", counts: [1, "x"] });
  assert.equal(status, 400, text);
  const { errors }: { errors: readonly { readonly pointer: string }[] } = JSON.parse(text);
  assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), ["/counts/1", "/sku"]);
}

/** The part of openapi-typescript 7 that is used here. */
interface OpenapiTypescript {
  default(document: object): Promise<readonly unknown[]>;
  astToString(nodes: readonly unknown[]): string;
}

/** Checks that a client's type of each result is neither unknown nor never. */
async function tryTypes(url: string, load: PackageLoader, folder: string): Promise<void> {
  const document = await readDocument(url);
  const { default: generate, astToString } = load<OpenapiTypescript>("openapi-typescript");
  const results = listResults(document);
  assert.ok(results.filter((path) => path.includes("/shop/")).length >= 10, results.join("\n"));
  const lines = results.map((path, index) => `export const r${index}: Known<paths${path}> = true;`);
  await mkdir(folder);
  await writeFile(join(folder, "paths.ts"), astToString(await generate(document)));
  await writeFile(join(folder, "check.ts"), [
    'import type { paths } from "./paths.ts";',
    "type Known<T> = [T] extends [never] ? false : unknown extends T ? false : true;",
    ...lines,
  ].join("\n"));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const flags = ["--ignoreConfig", "--noEmit", "--strict", "--allowImportingTsExtensions"];
  const { code, stdout } = await runNode([tsc, ...flags, join(folder, "check.ts")]);
  assert.equal(code, 0, stdout);
}

/** Reads /openapi.json as an administrator, who sees all of it. */
async function readDocument(url: string): Promise<object> {
  const login = { username: "admin", password: PASSWORD };
  const { text } = await post(`${url}/consumer/login`, login);
  const { token }: { readonly token: string } = JSON.parse(text);
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/openapi.json`, { headers });
  const document: object = JSON.parse(await response.text());
  return document;
}

async function post(url: string, body: object): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

/** Returns the path in the generated types to the JSON of each 200 and 201. */
function listResults(document: unknown): string[] {
  const places = Object.entries(asFields(asFields(document)["paths"])).flatMap(([path, item]) =>
    Object.entries(asFields(item)).map(([method, operation]) => ({ path, method, operation }))
  );
  return places.flatMap(({ path, method, operation }) =>
    ["200", "201"].flatMap((status) => {
      const { responses } = asFields(operation);
      const content = lookUp(asFields(responses)[status], "#/content/application~1json");
      if (content === undefined) return [];
      const steps = [path, method, "responses", Number(status), "content", "application/json"];
      return [steps.map((step) => `[${JSON.stringify(step)}]`).join("")];
    })
  );
}
