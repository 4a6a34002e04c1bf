import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const ROOT = resolve(import.meta.dirname, "../..");

/** The first example of a module that authors got, unchanged. */
const FIRST_EXAMPLE = `
import type { Endpoint } from "gatepost";

export const createOrder: Endpoint = {
  method: "POST",
  path: "/orders/:id",           // URLPattern pathname
  scope: "orders",               // one or several; [] = any valid token; or public: true = no token
  // or { description, scope }: needed to subscribe
  emits: { "order.created": "An order was placed" },
  maxBody: "64KiB",              // optional
  async handle({ params, query, body, request, caller, dispatch, signal, log }) {
    const order = { ...body, id: params.id, by: caller.sub };
    dispatch("order.created", order);
    // or any other value = 200 JSON, undefined = 204, or a web Response
    return { status: 201, body: order };
  },
};
`;

const GOOD = `
import type { Answer, Caller, Cronjob, Endpoint, Refusal, Scopes } from "gatepost";

export const scopes: Scopes = { a: "Do a", b: { description: "Do b", grave: true } };

const answer: Answer = { status: 200, headers: { "retry-after": 5, "set-cookie": ["a=1", "b=2"] } };

export const open: Endpoint = {
  method: "GET",
  path: "/open",
  public: true,
  handle({ caller, query, request, signal }) {
    const nobody: undefined = caller;
    return signal.aborted ? nobody : new Response(query.get("q") ?? request.url);
  },
};
export const any: Endpoint = {
  method: "DELETE",
  path: "/any",
  scope: [],
  emits: { a: { description: "A", scope: ["x", "y"] } },
  handle: ({ caller, dispatch }) => {
    const known: Caller = caller;
    dispatch("a", null, { subject: known.sub });
    return answer;
  },
};
export const typed: Endpoint<{ name: string }> = {
  method: "PUT",
  path: "/typed",
  scope: ["a", "b"],
  handle({ body }) {
    const refusal: Refusal = { status: 400, detail: body.name.toUpperCase() };
    throw refusal;
  },
};
export const form: Endpoint = {
  method: "POST",
  path: "/form",
  scope: "form",
  handle({ body }) {
    return body instanceof URLSearchParams ? body.get("a") : body?.a;
  },
};
export const job: Cronjob = {
  name: "job",
  every: "5m",
  async run({ dispatch, signal, log }) {
    log.info(dispatch("tick", { aborted: signal.aborted }), { a: 1 });
  },
};
`;

/** A handler's types, inferred from schemas, events and scope. */
const TYPED = `
import type { DefineEndpoint, Endpoint, StandardSchema } from "gatepost";
const endpoint: DefineEndpoint = (given) => given;
declare const zod: StandardSchema<{ a?: string }, { a: string }>;
declare const time: StandardSchema<{ at: string; n?: number }, { at: Date; n: number }>;
const text = { type: "string" } as const;
const is = <T>(value: T) => value;

export const all = endpoint({
  method: "POST",
  path: "/orders/:id",
  scope: "orders",
  input: {
    params: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
    query: { type: "object", properties: { limit: { type: "integer", default: 10 }, q: text } },
    body: {
      type: "object",
      properties: {
        item: { enum: ["lamp", "chair"] },
        tags: { type: "array", items: text },
        note: { type: ["string", "null"] },
        kind: { const: "order" },
        count: { anyOf: [{ type: "integer" }, { type: "null" }] },
      },
      required: ["item"],
    },
  },
  emits: {
    "order.created": {
      description: "An order was placed",
      schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    },
    "order.gone": "An order was taken back",
  },
  output: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  before: ({ caller }) => ({ user: caller.sub }),
  handle({ params, query, body, caller, dispatch, user, address }) {
    is<[number, number, string | undefined]>([params.id, query.limit, query.q]);
    is<"lamp" | "chair">(body.item);
    is<readonly string[] | undefined>(body.tags);
    is<string | null | undefined>(body.note);
    is<"order" | undefined>(body.kind);
    is<number | null | undefined>(body.count);
    is<string>(user + caller.sub + address);
    is<string>(dispatch("order.created", { n: 1 }));
    dispatch("order.gone", {}, { key: "k" });
    return { ok: true };
  },
});
export const open = endpoint({
  method: "GET",
  path: "/x",
  public: true,
  handle({ caller, params, query, dispatch, body }) {
    is<undefined>(caller);
    is<string | null>(query.get("x"));
    dispatch("any", 1);
    return { hi: params["x"], body };
  },
});
export const either = endpoint({
  method: "PUT",
  path: "/x",
  public: true,
  input: {
    query: { type: "object", additionalProperties: { type: "integer" } },
    body: {
      type: "object",
      properties: { mail: text, phone: text },
      anyOf: [{ required: ["mail"] }, { required: ["phone"] }],
    },
  },
  handle({ query, body }) {
    is<number | undefined>(query["x"]);
    is<string | undefined>(body.mail ?? body.phone);
  },
});
export const library = endpoint({
  method: "POST",
  path: "/z",
  scope: [],
  input: { body: zod },
  handle: ({ body }) => ({ status: 201, body: { a: body.a.length } }),
});
export const cached = endpoint({
  method: "GET",
  path: "/c",
  scope: [],
  output: text,
  handle({ request }) {
    const etag = '"1"';
    if (request.headers.get("if-none-match") === etag) return { status: 304, headers: { etag } };
    return { status: 200, headers: { etag, "cache-control": "private" }, body: "a" };
  },
});
export const given = endpoint({
  method: "POST",
  path: "/g",
  scope: [],
  emits: {
    library: { description: "A", schema: time },
    defaults: {
      description: "B",
      schema: {
        type: "object",
        properties: {
          n: { type: "integer", default: 1 },
          list: { type: "array", items: { type: "object", properties: { m: { default: 2 } } } },
          is: { anyOf: [{ type: "null" }, { type: "boolean" }] },
        },
        required: ["n", "is"],
      },
    },
  },
  handle({ dispatch }) {
    dispatch("library", { at: "2030-01-31" });
    dispatch("defaults", { is: true, list: [{}] });
    dispatch("defaults", { is: null, n: 5 });
  },
});
export const plain = {
  method: "POST",
  path: "/s",
  scope: "x",
  emits: { "a.b": "c" },
  handle({ body, caller, dispatch }) {
    dispatch("a.b", 1);
    return { ...body, s: caller.sub };
  },
} satisfies Endpoint;
export const list: Endpoint[] = [plain];
declare const context: Parameters<typeof plain.handle>[0];
plain.handle(context);
`;

/** Each line has one mistake that the compiler must find. */
const MISTAKES = `
import type { DefineEndpoint, Endpoint, Cronjob, Scopes, StandardSchema } from "gatepost";
const endpoint: DefineEndpoint = (given) => given;
const a = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
const at = { method: "GET", path: "/" } as const;
const base = { ...at, handle() {} } as const;
const emits = { ...at, scope: "a", emits: { a: { description: "A", schema: a } } } as const;
declare const time: StandardSchema<{ at: string }, { at: Date }>;
const times = { ...at, scope: "a", emits: { a: { description: "A", schema: time } } } as const;
const query = { query: a } as const;
const every = { name: "j", every: "1s" } as const;
export const neither: Endpoint = { ...base };
export const both: Endpoint = { ...base, scope: "a", public: true };
export const notTrue: Endpoint = { ...base, public: false };
export const misspelt: Endpoint = { method: "GET", path: "/", public: true, handel() {} };
export const method: Endpoint = { method: "HEAD", path: "/", public: true, handle() {} };
export const nobody: Endpoint = { ...at, public: true, handle: (c) => c.caller.sub };
export const body: Endpoint = { ...at, scope: "a", handle: (c) => c.body.a };
export const member: Endpoint = { ...at, scope: "a", handle: (c) => c.body?.a.b };
export const owner: Cronjob = { ...every, run: (c) => c.dispatch("a", 1, { subject: undefined }) };
export const heavy: Scopes = { a: { description: "Do a", heavy: true } };
export const data = endpoint({ ...emits, handle: (c) => c.dispatch("a", { n: "1" }) });
export const parsed = endpoint({ ...times, handle: (c) => c.dispatch("a", { at: new Date() }) });
export const name = endpoint({ ...emits, handle: (c) => c.dispatch("b", 1) });
export const input = endpoint({ ...base, scope: "a", input: query, handle: (c) => c.query.m });
export const output = endpoint({ ...base, public: true, output: a, handle: () => ({ n: "1" }) });
export const caller = endpoint({ ...base, public: true, handle: (c) => c.caller.sub });
export const keyword = endpoint({ ...base, public: true, output: { type: "text" } });
export const third: Cronjob = { ...every, run: (c) => c.dispatch("a", 1, { subjct: "u1" }) };
`;

/** Compiles one module as an author with `strict` does; returns the lines that have an error. */
async function compile(
  source: string,
  exactOptionalPropertyTypes = true,
): Promise<{ output: string; lines: number[] }> {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-types-"));
  try {
    const compilerOptions = {
      target: "esnext",
      module: "nodenext",
      lib: ["esnext"],
      types: ["node"],
      typeRoots: [join(ROOT, "node_modules/@types")],
      strict: true,
      exactOptionalPropertyTypes,
      noUncheckedIndexedAccess: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      paths: { gatepost: [join(ROOT, "src/mod.ts")] },
    };
    await writeFile(join(folder, "endpoint.ts"), source);
    await writeFile(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["endpoint.ts"] }),
    );
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const child = spawn(process.execPath, [tsc, "-p", folder], { cwd: folder });
    const closed = once(child, "close");
    const output = await text(child.stdout);
    const [code] = await closed;
    assert.equal(code === 0, output === "", "the compiler itself did not run");
    const lines = [...output.matchAll(/^endpoint\.ts\((\d+),/gm)].map(([, line]) => Number(line));
    return { output, lines };
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("the first example compiles under strict", async () => {
  assert.equal((await compile(FIRST_EXAMPLE)).output, "");
});

test("every form of an endpoint and of a cronjob compiles under strict", async () => {
  assert.equal((await compile(GOOD)).output, "");
});

test("a handler's types follow from its endpoint's schemas, events and scope", async () => {
  assert.equal((await compile(TYPED)).output, "");
  // As in the tsconfig.json that `gatepost init` writes.
  assert.equal((await compile(TYPED, false)).output, "");
});

test("the compiler finds each mistake that the types should find", async () => {
  const { output, lines } = await compile(MISTAKES);
  const expected = MISTAKES.split("\n").flatMap((line, index) =>
    line.startsWith("export const") ? [index + 1] : []
  );
  assert.deepEqual([...new Set(lines)], expected, output);
});
