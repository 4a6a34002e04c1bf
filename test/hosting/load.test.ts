import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { test } from "node:test";
import { loadEndpoints } from "../../src/hosting/load.ts";
import { writeFolder } from "../helpers/folder.ts";
import { endpoint, errorsOf, FIXTURES, loadApart } from "./load_stage.ts";

test("loadEndpoints() loads endpoints and cronjobs from every kind of module", async () => {
  const { endpoints, cronjobs } = await loadEndpoints(FIXTURES);
  assert.deepEqual(
    endpoints.map(({ file, exportName, method, pattern, scopes, maxBodyBytes }) =>
      [relative(FIXTURES, file), exportName, method, pattern.text, scopes, maxBodyBytes]),
    [
      ["admin/again.js", "default", "DELETE", "/orders/:order", ["orders"], undefined],
      ["admin/again.js", "listOrders", "GET", "/orders", [], undefined],
      ["orders.ts", "createOrder", "POST", "/orders/:id", ["orders"], 65_536],
      ["orders.ts", "ping", "GET", "/ping", undefined, undefined],
    ],
  );
  assert.deepEqual(
    cronjobs.map(({ file, name, everyMs }) => [relative(FIXTURES, file), name, everyMs]),
    [["admin/tick.mjs", "tick", 300_000]],
  );
});

test("loadEndpoints() reads the events that an endpoint declares", async () => {
  const { endpoints } = await loadEndpoints(FIXTURES);
  const undescribed = { data: undefined, example: undefined };
  assert.deepEqual(endpoints.find(({ exportName }) => exportName === "createOrder")?.emits, [
    { name: "order.created", description: "An order was placed", scope: [], ...undescribed },
    {
      name: "order.audited",
      description: "An order was looked at",
      scope: ["orders", "audit"],
      ...undescribed,
    },
  ]);
});

test("loadEndpoints() reads the descriptions of scopes", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": 'export const scopes = { "a:b": "Do a", c: { description: "Do c", grave: true } };',
    "b.js": 'export const scopes = { c: { description: "Do c", grave: true } };',
    "c.mjs": 'export * from "./a.mjs";',
  });
  const { scopes } = await loadEndpoints(folder);
  assert.deepEqual(
    scopes.map(({ file, name, description, grave }) =>
      [relative(folder, file), name, description, grave]),
    [
      ["a.mjs", "a:b", "Do a", false],
      ["a.mjs", "c", "Do c", true],
      ["b.js", "c", "Do c", true],
    ],
  );
});

test("a scope may be one name or several, each counted once", async (t) => {
  const cases: [scope: string, scopes: string[]][] = [
    ['"a"', ["a"]],
    ['["b", "a", "b"]', ["b", "a"]],
    ["[]", []],
  ];
  for (const [scope, scopes] of cases) {
    const folder = await writeFolder(t, { "a.mjs": endpoint(`scope: ${scope}`) });
    assert.deepEqual((await loadEndpoints(folder)).endpoints[0]?.scopes, scopes);
  }
});

test("a handler and a run are called as methods of their objects", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": `export const x = {
      method: "GET", path: "/x", public: true, handle(context) { return [this.path, context]; },
    };
    export const y = { name: "y", every: "1s", run(context) { return [this.name, context]; } };`,
  });
  const { endpoints: [x], cronjobs: [y] } = await loadEndpoints(folder);
  assert.deepEqual(x && Reflect.apply(x.handle, undefined, [1]), ["/x", 1]);
  assert.deepEqual(y && Reflect.apply(y.run, undefined, [2]), ["y", 2]);
});

const MANIFESTS = [
  ["without a package.json", {}],
  ["below a package.json without a type", { "package.json": "{}" }],
  ["below a package.json of CommonJS", { "package.json": '{ "type": "commonjs" }' }],
] as const;

for (const [where, above] of MANIFESTS) {
  test(`modules load as ES modules ${where}, without output on stderr`, async (t) => {
    const at = (path: string): string =>
      `export const x = { method: "GET", path: "${path}", public: true, handle() {} };`;
    const folder = await writeFolder(t, {
      ...above,
      "a.ts": at("/a"),
      "b.mts": at("/b"),
      "c.js": at("/c"),
      "d.mjs": at("/d"),
      "sub/deep/e.js": at("/e"),
      "f.ts": `import type { Endpoint } from "gatepost";
        import { path } from "./.part.js";
        import { kind } from "classic";
        const x: Endpoint = { method: "GET", path: path + kind, public: true, handle() {} };
        export { x };`,
      ".part.js": 'export const path = "/f-";',
      "node_modules/classic/index.js": "exports.kind = typeof require;",
      "node_modules/classic/package.json": '{ "main": "index.js" }',
    });
    assert.deepEqual(await loadApart(folder), [0, "/a,/b,/c,/d,/f-function,/e", ""]);
  });

  test(`modules import others from later folders and through links ${where}`, async (t) => {
    const folder = await writeFolder(t, {
      ...above,
      "in/api/a.js": `import { path } from "../lib/path.js"; import "../lib/b.js";
        export const x = { method: "GET", path, public: true, handle() {} };`,
      "in/lib/path.js": 'export const path = "/" + typeof require;',
      "out/b.js": 'if (typeof require !== "undefined") throw Error("CommonJS");',
    });
    await symlink("../../out/b.js", join(folder, "in/lib/b.js"));
    await symlink("in", join(folder, "link"));
    assert.deepEqual(await loadApart(join(folder, "link")), [0, "/undefined", ""]);
  });
}

test("declarations, tests, hidden files, node_modules and others are not loaded", async (t) => {
  const folder = await writeFolder(t, {
    "a.d.ts": "throw 1;",
    "b.d.mts": "throw 1;",
    "c.test.ts": "throw 1;",
    "d.spec.mjs": "throw 1;",
    ".e.ts": "throw 1;",
    ".git/f.js": "throw 1;",
    "node_modules/g/g.js": "throw 1;",
    "sub/node_modules/h.js": "throw 1;",
    "i.json": "{",
    "j.cjs": "throw 1;",
    "README.md": "#",
    "k.tsx": "throw 1;",
    "l.jsx": "throw 1;",
    "m.cts": "throw 1;",
    "n.d.cts": "throw 1;",
    "o.test.tsx": "throw 1;",
    "p.spec.cjs": "throw 1;",
  });
  const files = ["j.cjs", "k.tsx", "l.jsx", "m.cts"];
  const passedOver = files.map((file) => ({ file: join(folder, file) }));
  assert.deepEqual(await loadEndpoints(folder), {
    endpoints: [],
    cronjobs: [],
    scopes: [],
    passedOver,
  });
});

test("links are followed, in circles once, and a module of two links loads once", async (t) => {
  const folder = await writeFolder(t, { "..data/a.js": endpoint("") });
  await symlink("..data/a.js", join(folder, "a.js"));
  await symlink("..data/a.js", join(folder, "b.js"));
  await symlink(".", join(folder, "again"));
  await symlink("nowhere", join(folder, "dead"));
  const { endpoints } = await loadEndpoints(folder);
  assert.deepEqual(endpoints.map(({ file }) => relative(folder, file)), ["a.js"]);
});

test("other exports are ignored, and those like an endpoint listed as passed over", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": `
      export const text = "x", number = 1, nothing = null, missing = undefined;
      export function handle() {}
      export class Handler { method = "GET"; path = "/"; handle() {} }
      export const instance = new Handler();
      export const config = { path: "/tmp" };
      export const named = { name: "x" };
      export const runner = { run() {} };
      export const map = new Map([["method", "GET"]]);
      export const words = { a: "not called scopes" };
      export const shopConfig = { name: "shop", run: true };
      export const oauth = { scope: "orders", path: "/callback" };
      export const alone = { handle() {} };
      export const lazy = { get routes() { throw 1; } };
      export const later = { get name() { throw 1; }, get handle() { throw 1; } };
      export const env = new Proxy({}, { get() { throw new Error("no such variable"); } });
      export const served = { method: "GET", path: "/", public: true, handle() {} };
      export default { served, routes: { method: "GET", path: "/" }, more: [[], served, instance,
        { every: "1s", name: "x", run() {} }] };`,
    "b.mjs": 'export const scopes = ["a", "b"]; export const numbers = [1, [2]];',
  });
  const { endpoints, cronjobs, scopes, passedOver } = await loadEndpoints(folder);
  assert.deepEqual([endpoints.length, cronjobs, scopes], [1, [], []]);
  assert.deepEqual(passedOver.map(({ exportName }) => exportName), [
    ...["alone", "default.routes", "default.more.3", "instance", "later", "oauth", "shopConfig"],
  ]);
});

test("the items of a list are loaded, each once and named by its place", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": `const at = (path) => ({ method: "GET", path, public: true, handle() {} });
      export const one = at("/1");
      export const list = [one, at("/2"), { name: "x", every: "5m", run() {} }, "text", undefined];
      export default [at("/3")];`,
  });
  const { endpoints, cronjobs, passedOver } = await loadEndpoints(folder);
  assert.deepEqual([...endpoints, ...cronjobs].map(({ exportName }) => exportName), [
    ...["default[0]", "list[0]", "list[1]", "list[2]"],
  ]);
  assert.deepEqual(passedOver, []);
  const source = "export const all = [1, 2, { every: 1, run() {} }];";
  const errors = await errorsOf(await writeFolder(t, { "a.mjs": source }));
  assert.match(errors.join(), /^a\.mjs, export all\[2\]: \/name Is required/);
});
