import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { symlink } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { LoadError, loadEndpoints } from "../../src/hosting/load.ts";
import { writeFolder } from "../helpers/folder.ts";

const FIXTURES = resolve(import.meta.dirname, "../fixtures/endpoints");
const LOAD = resolve(import.meta.dirname, "../../src/hosting/load.ts");

/** The errors of a folder as `file, export name: reason`, paths relative to it. */
async function errorsOf(folder: string, timeoutMs = 10_000): Promise<string[]> {
  try {
    await loadEndpoints(folder, timeoutMs);
  } catch (error) {
    assert.ok(error instanceof LoadError, String(error));
    // A reason may have several lines.
    return error.message.split(new RegExp(`\n(?=${folder}/)`))
      .map((each) => each.replaceAll(`${folder}/`, ""));
  }
  return [];
}

const endpoint = (fields: string): string =>
  `export const x = { method: "GET", path: "/x", scope: "s", handle() {}, ${fields} };`;
const cronjob = (fields: string): string =>
  `export const x = { name: "x", every: "5m", run() {}, ${fields} };`;

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

/** Loads a folder in a process of its own: exit code, paths and stderr. */
async function loadApart(folder: string): Promise<unknown[]> {
  const script = `const { loadEndpoints } = await import("${pathToFileURL(LOAD).href}");
    const { endpoints } = await loadEndpoints(${JSON.stringify(folder)});
    console.log(endpoints.map(({ pattern }) => pattern.text).join());`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: folder,
    env: {},
  });
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return [code, out.trim(), err];
}

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

test("a module that ends the process while it loads is named, with exit code 1", async (t) => {
  const folder = await writeFolder(t, {
    "a.js": endpoint(""),
    "b.js": "await 1; process.exit(0);",
  });
  const said = `${join(folder, "b.js")}: the process ended while this was loading\n`;
  assert.deepEqual(await loadApart(folder), [1, "", said]);
  const listening = process.listenerCount("exit");
  await loadEndpoints(FIXTURES);
  assert.equal(process.listenerCount("exit"), listening);
});

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

test("a folder, link or module that cannot be read is an error", async (t) => {
  const folder = await writeFolder(t, { "file.txt": "" });
  await symlink("nowhere.ts", join(folder, "dead.ts"));
  for (const path of [join(folder, "nowhere"), join(folder, "file.txt"), folder]) {
    const errors = await errorsOf(path);
    assert.equal(errors.length, 1);
    assert.match(errors.join(), /^\S+: cannot be read: (ENOENT|ENOTDIR)/);
    assert.equal(errors.join().endsWith("(GATEPOST_ENDPOINTS)"), path !== folder);
  }
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

test("a module that does not load is an error with its file, message and place", async (t) => {
  const cases: [name: string, source: string, error: RegExp][] = [
    ["a.mjs", "\nexport const x = {", /^a\.mjs: SyntaxError: .* end of input \(a\.mjs:2\)$/],
    ["a b.mjs", "x x", /^a b\.mjs: SyntaxError: Unexpected identifier 'x' \(a b\.mjs:1\)$/],
    ["a.ts", "import './.bad.mjs';", /^a\.ts: SyntaxError: .*token ';' \(\.bad\.mjs:2\)$/],
    ["a.ts", "import x from './.a.txt' with { type: 'json' }", /^a\.ts: \w*Error: [^(]*$/],
    ["a.ts", "\nconst x: number = 1, x = 2;", /^a\.ts: SyntaxError: .* declared \(a\.ts:2\)$/],
    ["a.ts", "\nexport const x: = 1;", /^a\.ts: SyntaxError: Unexpected token.* \(a\.ts:2\)$/],
    ["a.ts", "enum A {}", /^a\.ts: SyntaxError: .*enum.* \(a\.ts:1\)$/],
    ["\u00fc b.ts", "enum A {}", /^\u00fc b\.ts: SyntaxError: .*enum.* \(\u00fc b\.ts:1\)$/],
    ["a.js", "\n\nthrow new Error('boom');export {}", /^a\.js: Error: boom \(a\.js:3\)$/],
    ["a.mjs", "throw new Error('refused ::1:5432')", /: Error: refused ::1:5432 \(a\.mjs:1\)$/],
    ["a.js", "throw 'text';export {}", /^a\.js: threw text while loading$/],
    ["a.mjs", "throw Object.create(null)", /^a\.mjs: threw a value that cannot be described$/],
    ["a.mjs", "throw Object.assign(Error('x'), { stack: 1 })", /^a\.mjs: threw a value /],
    ["a.js", "module.exports = {};", /^a\.js: .*module is not defined.* \(a\.js:1\)$/s],
    ["a.mjs", "import './nowhere.mjs';", /^a\.mjs: Error: Cannot find module .*nowhere/],
    ["a.ts", "import { x } from './a.ts';", /^a\.ts: SyntaxError: .*'x'; of a type, .*type" \(/],
    ["a.ts", "import { Endpoint } from 'gatepost'; export { Endpoint };", /write "import type"/],
    ["a.mjs", "await new Promise(() => {});", /^a\.mjs: its top-level await took over 250 ms$/],
    ["a.js", "require('x'); export {};", /: ReferenceError.*; CommonJS goes into \.cjs files \(/],
    ["a.ts", "import './b'; import './c.js'", /; name the file with the extension that it has$/],
    ["a.ts", "import './c.js'", /; name the file with the extension that it has$/],
    ["a.ts", "import 'gatepost/testing'", / and gatepost\/testing in \.test\.ts files alone$/],
    ["a.ts", "import './.a.json'", /import attribute[^(]*$/],
  ];
  for (const [name, source, error] of cases) {
    const files = { [name]: source, ".a.json": "{}", ".a.txt": "{", ".bad.mjs": "\nlet x = ;" };
    const errors = await errorsOf(await writeFolder(t, files), 250);
    assert.equal(errors.length, 1, source);
    assert.match(errors.join(), error, source);
  }
});

test("an import without type is named even if the package is installed", async (t) => {
  const folder = await writeFolder(t, {
    "a.ts": "import { Endpoint } from 'gatepost'; export type E = Endpoint;",
    "node_modules/gatepost/package.json": '{ "type": "module", "main": "mod.js" }',
    "node_modules/gatepost/mod.js": "export {};",
  });
  assert.match((await errorsOf(folder)).join(), /'Endpoint'; write "import type".* \(a\.ts:1\)$/);
});

test("modules that import one that hangs are waited for together", async (t) => {
  const waiting = Array.from({ length: 8 }, (_, at) => [`${at}.mjs`, 'import "./.hangs.mjs";']);
  const folder = await writeFolder(t, {
    ".hangs.mjs": "await new Promise(() => {});",
    ...Object.fromEntries(waiting),
  });
  const startedMs = performance.now();
  assert.equal((await errorsOf(folder, 500)).length, 8);
  assert.ok(performance.now() - startedMs < 2_500);
});

test("an endpoint with a getter that throws is an error with its file and export", async (t) => {
  const source = `export const x = { method: "GET", get path() { throw Error("no PREFIX"); } };`;
  const errors = await errorsOf(await writeFolder(t, { "a.mjs": source, "b.mjs": "nonsense" }));
  assert.equal(errors.length, 2);
  assert.match(errors.join("\n"), /^a\.mjs, export x: Error: no PREFIX \(a\.mjs:1\)$/m);
});

test("a module that imports a file without permission is named with the file", async (t) => {
  const folder = await writeFolder(t, {
    "in/a.mjs": 'import "../outside.mjs";',
    "outside.mjs": "",
  });
  const script = `const { loadEndpoints } = await import("${pathToFileURL(LOAD).href}");
    const folder = ${JSON.stringify(join(folder, "in"))};
    await loadEndpoints(folder).catch((error) => console.log(error.message));`;
  const allowed = [join(folder, "in"), resolve(import.meta.dirname, "../..")];
  const child = spawn(process.execPath, [
    "--permission",
    ...allowed.map((path) => `--allow-fs-read=${path}`),
    "--input-type=module",
    "--eval",
    script,
  ]);
  const out = await text(child.stdout);
  assert.match(out, /a\.mjs: Error: .*restricted.* \(FileSystemRead: \S+\/outside\.mjs\)/);
  assert.match(out, /; GATEPOST_ENDPOINTS must name a folder that holds this too/);
});

test("each bad field of an export is an error", async (t) => {
  const oneScope = "Must be 1 to 64 printable ASCII characters without space, comma, quote or " +
    "backslash.";
  const missing = "/scope Is required: one or several, [] for any valid token; or else " +
    "public: true.";
  const methods = "/method Must be one of: GET, POST, PUT, PATCH, DELETE.";
  const every = '/every Must be a duration from "1s" to "366d", such as "5m".';
  const size = '/maxBody Must be a size, such as "64KiB".';
  const never = "/path Can never match: the response to such requests is 400.";
  const invalid = "/path Is not a valid URLPattern pathname.";
  const noName = "Must be 1 to 64 of A-Za-z0-9._-";
  const ofClass = "Must be a plain object, not one of a class.";
  const eventName = "Must be 1 to 128 of A-Z a-z 0-9 . _ : -.";
  const cases: [source: string, reasons: string[]][] = [
    ['export const x = { path: "/x", handle() {} };', ["/method Is required.", missing]],
    ['export const x = { method: "GET", handle() {} };', [
      "/path Is required.",
      missing,
    ]],
    ['export const x = { method: "GET", path: "/x" };', ["/handle Is required.", missing]],
    [endpoint("handle: 1"), ["/handle Must be a function."]],
    [endpoint("handel: 1, emit: {}"), [
      "/handel Unknown member.",
      "/emit Unknown member.",
    ]],
    [endpoint('method: "get"'), [methods]],
    [endpoint('method: "HEAD"'), [methods]],
    [endpoint('method: "OPTIONS"'), [methods]],
    [endpoint("method: undefined"), ["/method Is required."]],
    [endpoint('method: ["GET"]'), [methods]],
    [endpoint("path: 7"), ['/path Must start with "/".']],
    [endpoint('path: ""'), ['/path Must start with "/".']],
    [endpoint('path: "orders"'), ['/path Must start with "/".']],
    [endpoint('path: "{/orders}?"'), ['/path Must start with "/".']],
    [endpoint('path: "/orders/"'), ['/path Must not end with "/".']],
    [endpoint('path: "/a//b"'), ["/path Must not have an empty segment."]],
    [endpoint('path: "/a/../b"'), [never]],
    [endpoint('path: "/a/%2E"'), [never]],
    [endpoint('path: "/a%2fb"'), [never]],
    [endpoint('path: "/a%5Cb"'), [never]],
    [endpoint('path: "/100%"'), [never]],
    [endpoint('path: "/:id/:id"'), [invalid]],
    [endpoint('path: "/(x"'), [invalid]],
    [endpoint('path: "/orders?x=1"'), [invalid]],
    [endpoint("scope: undefined"), [missing]],
    [endpoint("scope: undefined, public: false"), ["/public Must be true."]],
    [endpoint("public: true"), ["/public Must not be given with scope."]],
    [endpoint("public: false"), [
      "/public Must be true.",
      "/public Must not be given with scope.",
    ]],
    [endpoint("scope: [], public: true"), ["/public Must not be given with scope."]],
    [endpoint('scope: undefined, public: "yes"'), ["/public Must be true."]],
    [endpoint('scope: ""'), [`/scope/0 ${oneScope}`]],
    [endpoint("scope: null"), ["/scope/0 Must be a string."]],
    [endpoint('scope: "a b"'), [`/scope/0 ${oneScope}`]],
    [endpoint('scope: "a,b"'), [`/scope/0 ${oneScope}`]],
    [endpoint('scope: ["a", ""]'), [`/scope/1 ${oneScope}`]],
    [endpoint('scope: ["a", 7]'), ["/scope/1 Must be a string."]],
    [endpoint('scope: "x".repeat(65)'), [`/scope/0 ${oneScope}`]],
    [endpoint('emits: ["a"]'), [
      "/emits Must be an object: each name with its description.",
    ]],
    [endpoint('emits: { "": "d" }'), [`/emits/ ${eventName}`]],
    [endpoint('emits: { "a b": "d" }'), [`/emits/a b ${eventName}`]],
    [endpoint('emits: { ["x".repeat(129)]: "d" }'), [`/emits/${"x".repeat(129)} ${eventName}`]],
    [endpoint('emits: { "gatepost.x": "d" }'), [
      "/emits/gatepost.x Must not start with gatepost.",
    ]],
    [endpoint("emits: { a: true }"), ["/emits/a/description Must be a string."]],
    [endpoint("emits: { a: {} }"), ["/emits/a/description Is required."]],
    [endpoint('emits: { a: { description: "d", scopes: "s" } }'), [
      "/emits/a/scopes Unknown member.",
    ]],
    [endpoint('emits: { a: { description: "d", scope: "" } }'), [
      `/emits/a/scope/0 ${oneScope}`,
    ]],
    // Values that would be read as if they were empty.
    [endpoint("input: Promise.resolve({ query: {} })"), [`/input ${ofClass}`]],
    [endpoint("cors: new Map([['origins', '*']])"), [`/cors ${ofClass}`]],
    [endpoint("emits: new Map([['a', 'd']])"), [
      "/emits Must be an object: each name with its description.",
    ]],
    [endpoint("emits: { a: Promise.resolve('d') }"), [`/emits/a ${ofClass}`]],
    [endpoint("output: { type: 'object', properties: new Map() }"), [
      "/output/properties Must be an object of schemas.",
    ]],
    [endpoint('maxBody: "64KB"'), [size]],
    [endpoint('maxBody: "0B"'), [size]],
    [endpoint("maxBody: 65536"), [size]],
    ['export const x = { nam: "x", every: "5m", run() {} };', [
      "/name Is required.",
      "/nam Unknown member.",
    ]],
    ['export const x = { name: "x", every: "5m", rum() {} };', [
      "/run Is required.",
      "/rum Unknown member.",
    ]],
    ['export const x = { every: "5m", run() {} };', ["/name Is required."]],
    [cronjob('name: ""'), [`/name ${noName}`]],
    [cronjob('name: "a/b"'), [`/name ${noName}`]],
    [cronjob('name: "x".repeat(65)'), [`/name ${noName}`]],
    [cronjob('name: "gatepost.x"'), ["/name Is the service's own."]],
    [cronjob('every: "5 minutes"'), [every]],
    [cronjob('every: "999ms"'), [every]],
    [cronjob('every: "0"'), [every]],
    [cronjob('every: "367d"'), [every]],
    [cronjob("every: 5000"), [every]],
    [cronjob("run: null"), ["/run Must be a function."]],
  ];
  for (const [source, reasons] of cases) {
    const folder = await writeFolder(t, { "a.mjs": source });
    assert.deepEqual(
      await errorsOf(folder),
      reasons.map((reason) => `a.mjs, export x: ${reason}`),
      source,
    );
  }
});

test("exports at the edge of the rules load", async (t) => {
  const cases = [
    ...["/", "/a", "/:a", "/*", "/:a/backend", "/*/system", "/a/:b?", "/a/:b(\\\\d+)", "/a{/:b}?"],
    ...["/backends", "/Backend", "/.well-known-x", "/caf\u00e9", "/a/...", "/a%20b"],
  ].map((path) => endpoint(`path: "${path}"`));
  cases.push(
    ...["scope: []", 'scope: ["a", "b"]', 'scope: "x".repeat(64)', "scope: undefined, public: true"]
      .map(endpoint),
    ...["emits: {}", 'emits: { "a:b_c-d.9": "d" }'].map(endpoint),
    endpoint('emits: { ["x".repeat(128)]: "" }'),
    ...['emits: { gatepost: "d" }', 'maxBody: "1B"', 'maxBody: "1GiB"'].map(endpoint),
    ...["PUT", "PATCH", "POST", "DELETE"].map((method) => endpoint(`method: "${method}"`)),
    ...['every: "1s"', 'every: "366d"', 'name: "A.b_c-9"'].map(cronjob),
    `export const x = Object.freeze(Object.assign(Object.create(null), {
      method: "GET", path: "/", public: true, handle: async () => {} }));`,
  );
  for (const source of cases) {
    assert.deepEqual(await errorsOf(await writeFolder(t, { "a.mjs": source })), [], source);
  }
});

test("a path that begins with a segment of the service is an error", async (t) => {
  const segments = [
    ...["authorization", "consumer", "backend", "system", "console", ".well-known"],
    ...["account", "openapi.json", "asyncapi.json"],
  ];
  for (const segment of segments) {
    const tails = ["", "/x", "/:id", "/*", "/:id?", "{/x}?"];
    for (const path of tails.map((tail) => `/${segment}${tail}`)) {
      const folder = await writeFolder(t, { "a.mjs": endpoint(`path: "${path}"`) });
      assert.deepEqual(await errorsOf(folder), [
        `a.mjs, export x: /path "/${segment}" is the service's own.`,
      ]);
    }
  }
});

test("two endpoints with one method and path shape are an error, also in two files", async (t) => {
  const at = (path: string, method = "GET"): string =>
    endpoint(`method: "${method}", path: String.raw\`${path}\``);
  const cases: [first: string, second: string, isRefused: boolean][] = [
    [at("/a"), at("/a"), true],
    [at("/a/:id"), at("/a/:x"), true],
    [at("/:a/:b"), at("/:b/:a"), true],
    [at("/a/:id(\\d+)"), at("/a/:x(\\d+)"), true],
    [at("/a/:id(\\d+)"), at("/a/(\\d+)"), true],
    [at("/a/*"), at("/a/:rest(.*)"), true],
    [at("/a/{b}"), at("/a/b"), true],
    [at("/é"), at("/%C3%A9"), true],
    [at("/a/:b?"), at("/a{/:c}?"), true],
    [at("/a"), at("/a", "POST"), false],
    [at("/a"), at("/A"), false],
    [at("/a/:id"), at("/a/*"), false],
    [at("/a/:id"), at("/a/:id(\\d+)"), false],
    [at("/a/:id(\\d+)"), at("/a/:id(\\w+)"), false],
    [at("/a/:id"), at("/a/\\:id"), false],
    [at("/a/:id"), at("/a/:id?"), false],
  ];
  for (const [first, second, isRefused] of cases) {
    const errors = await errorsOf(await writeFolder(t, { "a.mjs": first, "b.mjs": second }));
    assert.equal(errors.length, isRefused ? 1 : 0, `${first}\n${second}\n${errors.join()}`);
    const clash = /^b\.mjs, export x: GET \S+ matches what x of a\.mjs has/;
    if (isRefused) assert.match(errors.join(), clash);
  }
});

test("two cronjobs with one name are an error", async (t) => {
  const folder = await writeFolder(t, { "a.mjs": cronjob(""), "b.mjs": cronjob('every: "1h"') });
  assert.deepEqual(await errorsOf(folder), [
    'b.mjs, export x: name "x" is already used by x of a.mjs',
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

test("an invalid description of a scope is an error", async (t) => {
  const cases: [scopes: string, reasons: string[]][] = [
    ["{ a: 1 }", ["/a/description Must be a string."]],
    ["{ a: {} }", ["/a/description Is required."]],
    ["{ a: { description: 'x', grav: true } }", [
      "/a/grav Unknown member.",
    ]],
    ["{ a: { description: 'x', grave: 1 } }", ["/a/grave Must be true or false."]],
    ["{ 'a b': 'x' }", ["/a b Is not a scope's name."]],
    ["{ backend: 'harmless', consumer: 'x' }", [
      "/backend Is the service's own.",
      "/consumer Is the service's own.",
    ]],
  ];
  for (const [scopes, reasons] of cases) {
    const folder = await writeFolder(t, { "a.mjs": `export const scopes = ${scopes};` });
    const expected = reasons.map((reason) => `a.mjs, export scopes: ${reason}`);
    assert.deepEqual(await errorsOf(folder), expected);
  }
});

test("two modules that describe one scope differently are an error", async (t) => {
  const say = (words: string) => `export const scopes = { a: ${words}, b: "Do b" };`;
  for (const [first, second, isRefused] of [
    ['"Do a"', '"Do a"', false],
    ['"Do a"', '{ description: "Do a", grave: false }', false],
    ['"Do a"', '"Do it"', true],
    ['"Do a"', '{ description: "Do a", grave: true }', true],
  ] as const) {
    const folder = await writeFolder(t, { "a.mjs": say(first), "b.mjs": say(second) });
    assert.deepEqual(
      await errorsOf(folder),
      isRefused
        ? ['b.mjs, export scopes: scopes["a"] differs from what scopes of a.mjs has already']
        : [],
    );
  }
});

test("a description of a scope is compared with the first one", async (t) => {
  const say = (words: string) => `export const scopes = { a: "${words}" };`;
  const folder = await writeFolder(t, {
    "a.mjs": say("Do a"),
    "b.mjs": say("Do it"),
    "c.mjs": say("Do a"),
  });
  assert.deepEqual(await errorsOf(folder), [
    'b.mjs, export scopes: scopes["a"] differs from what scopes of a.mjs has already',
  ]);
});

test("an event declared with two different scopes is an error", async (t) => {
  const emit = (path: string, scope: string): string =>
    endpoint(`path: "${path}", emits: { e: { description: "d", scope: ${scope} } }`);
  const cases: [first: string, second: string, isRefused: boolean][] = [
    ['"a"', '"b"', true],
    ['"a"', "undefined", true],
    ['["a", "b"]', '"a"', true],
    ['["a", "b"]', '["b", "a"]', false],
    ["[]", "undefined", false],
  ];
  for (const [first, second, isRefused] of cases) {
    const files = { "a.mjs": emit("/a", first), "b.mjs": emit("/b", second) };
    const folder = await writeFolder(t, files);
    assert.deepEqual(
      await errorsOf(folder),
      isRefused ? ['b.mjs, export x: emits["e"] has another scope than in x of a.mjs'] : [],
      `${first} ${second}`,
    );
  }
});

test("the errors of all files come together, each with file, export and reason", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": "export const x = {",
    "b/b.mjs": `export const good = { method: "GET", path: "/g", public: true, handle() {} };
      export const one = { method: "GET", path: "/backend", public: true, handle() {} };
      export const two = { method: "GOT", path: "/g", public: true, handle() {} };`,
    "c.mjs": 'export const x = { method: "GET", path: "/g", scope: [], handle() {} };',
  });
  assert.deepEqual((await errorsOf(folder)).map((each) => each.replace(/: .*/, "")), [
    "a.mjs",
    "b/b.mjs, export one",
    "b/b.mjs, export two",
    "c.mjs, export x",
  ]);
});
