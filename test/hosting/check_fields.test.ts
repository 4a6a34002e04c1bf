import assert from "node:assert/strict";
import { test } from "node:test";
import { writeFolder } from "../helpers/folder.ts";
import { cronjob, endpoint, errorsOf } from "./load_stage.ts";

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
