import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** What `gatepost init` writes: texts by path. */
export function initFiles(): Readonly<Record<string, string>> {
  return {
    "endpoints/orders.ts": ENDPOINT,
    "endpoints/orders.test.ts": TEST,
    "gatepost.d.ts": ambientTypes(),
    "tsconfig.json": toJson({
      compilerOptions: {
        target: "esnext",
        module: "nodenext",
        lib: ["esnext", "dom"], // dom: Request, URLSearchParams, AbortSignal
        types: [],
        strict: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        erasableSyntaxOnly: true, // what Node can run: it strips types and compiles nothing
        verbatimModuleSyntax: true,
      },
    }),
    "package.json": toJson({
      private: true,
      type: "module",
      scripts: {
        dev: "gatepost dev",
        test: "gatepost test",
        check: "GATEPOST_ENDPOINTS=endpoints gatepost check",
      },
    }),
    ".gitignore": "data/\nnode_modules/\n", // data: the database, with its private keys
  };
}

const ENDPOINT = `import type { DefineEndpoint, JsonSchema, Scopes } from "gatepost";

// Gives \`handle\` the types of what its endpoint takes, dispatches and returns.
const endpoint: DefineEndpoint = (given) => given;

// What users are asked to allow.
export const scopes: Scopes = { orders: "Place orders in your name" };

const ORDER = {
  type: "object",
  properties: {
    id: { type: "string" },
    item: { type: "string", minLength: 1, maxLength: 100 },
    count: { type: "integer", minimum: 1, default: 1 },
  },
  required: ["id", "item"],
} as const satisfies JsonSchema;

export const placeOrder = endpoint({
  method: "POST",
  path: "/orders",
  summary: "Place an order",
  scope: "orders",
  input: {
    body: {
      type: "object",
      properties: { item: ORDER.properties.item, count: ORDER.properties.count },
      required: ["item"],
    },
  },
  output: ORDER,
  emits: {
    "order.placed": {
      description: "An order was placed",
      schema: ORDER,
      example: { id: "1", item: "lamp", count: 2 },
    },
  },
  handle({ body, caller, dispatch }) {
    const order = { id: crypto.randomUUID(), ...body };
    // Stored before the response is sent, and delivered to the caller's subscriptions alone.
    dispatch("order.placed", order, { subject: caller.sub });
    return { status: 201, body: order };
  },
});
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "gatepost/testing";
import { placeOrder } from "./orders.ts";

test("who places an order gets an event of it", async () => {
  const sub = "u12345678";
  const { status, body, events } = await call(placeOrder, {
    body: { item: "lamp" },
    caller: { sub },
  });
  assert.equal(status, 201);
  assert.partialDeepStrictEqual(body, { item: "lamp", count: 1 });
  assert.partialDeepStrictEqual(events, [{ name: "order.placed", data: body, subject: sub }]);
});

test("an order without an item is refused", async () => {
  const { status, events } = await call(placeOrder, { body: { count: 2 } });
  assert.equal(status, 400);
  assert.deepEqual(events, []);
});

test("to place an order needs the scope", async () => {
  const { status } = await call(placeOrder, { body: { item: "lamp" }, caller: { scopes: [] } });
  assert.equal(status, 403);
});
`;

/** What a module of types takes from another, or passes on. */
const RELATIVE = /^(?:import|export) type [^;]* from "\.\/([\w/]+)\.ts";\n/gm;

/** The types for authors as ambient modules, so that an editor needs nothing installed. */
function ambientTypes(): string {
  const extension = extname(import.meta.filename) === ".js" ? ".d.ts" : ".ts";
  const read = (name: string) =>
    readFileSync(join(import.meta.dirname, `../${name}${extension}`), "utf8");
  const root = read("mod");
  const parts = [...root.matchAll(RELATIVE)].map(([, name = ""]) => read(name));
  const types = [root, ...parts].join("").replace(RELATIVE, "");
  const testing = read("mod/testing").replace(/ from "\.\/.*";/g, ' from "gatepost";');
  return [
    "// Written by `gatepost init`. Delete it where the package gatepost itself is installed.",
    `declare module "gatepost" {\n${types}\nexport {};\n}`,
    `declare module "gatepost/testing" {\n${testing}\nexport const call: Call;\n}`,
    "// Until tsconfig.json has types of @types/node, whatever comes from Node is of any type.",
    'declare module "node:*";\n',
  ].join("\n\n");
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
