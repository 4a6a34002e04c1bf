import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openCommandLine, readJson } from "../helpers/command_line.ts";
import { writeFolder } from "../helpers/folder.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

/** A folder of endpoint modules, and `check` of it, which may run in a process of its own. */
async function openWithEndpoints(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  options: { readonly ownProcess?: boolean } = {},
) {
  const folder = await writeFolder(t, files);
  const cli = await openCommandLine(t, { ...options, env: { GATEPOST_ENDPOINTS: folder } });
  return { folder, check: (...flags: readonly string[]) => cli.run("check", ...flags) };
}

/** What check warns of where a module exports these endpoints, given as source. */
async function warningsOf(t: TestContext, endpoints: readonly string[]): Promise<unknown[]> {
  const { check } = await openWithEndpoints(t, { "a.mjs": `export const all = [${endpoints}];` });
  const { warnings } = readJson(await check("--json"));
  return [warnings].flat().filter((line) => !String(line).startsWith("GATEPOST_"));
}

test("check lists the routes and cronjobs of endpoint modules", async (t) => {
  const cli = await openCommandLine(t);

  const checked = await cli.runWith({ env: { GATEPOST_ENDPOINTS: ENDPOINTS } }, "check");

  assert.equal(checked.code, 0, checked.stderr);
  assert.match(checked.stdout, /^ {2}METHOD +PATH +ACCESS +EMITS +FILE$/m);
  assert.match(checked.stdout, /^ {2}POST +\/orders\/:id +orders +order\.created.*orders\.ts$/m);
  assert.match(checked.stdout, /^ {2}GET +\/ping +public +- /m);
  assert.match(checked.stdout, /^ {2}tick +5m +.+tick\.mjs$/m);
});

test("check warns of scopes without a description for the consent page", async (t) => {
  const at = (path: string, scope: string) =>
    `{ method: "GET", path: "${path}", scope: ${scope}, emits, handle() {} }`;
  const { check } = await openWithEndpoints(t, {
    "orders.mjs": `const emits = { paid: { description: "Paid", scope: "cash" } };
      export const one = ${at("/1", '["orders", "consumer"]')}, two = ${at("/2", '"refunds"')};
      export const scopes = { orders: "Place orders" };`,
  });

  const people = await check();
  const json = await check("--json");

  assert.equal(people.code, 0, people.stderr);
  const [, warnings = ""] = people.stdout.split("\nWarnings\n");
  assert.match(warnings, /^ {2}Scope refunds has no desc.*scopes = \{ "refunds": "…" \}\n$/m);
  assert.match(warnings, /^ {2}Scope cash has no description /m, "the scope of an event");
  const { ok, warnings: listed } = readJson(json);
  assert.equal(ok, true);
  assert.deepEqual(listed, warnings.trim().split("\n  "));
});

test("check prints the output of a module to standard error", async (t) => {
  const files = { "a.mjs": 'console.log("loading"); console.table([1]);' };
  const { check } = await openWithEndpoints(t, files, { ownProcess: true });
  const json = await check("--json");
  assert.equal(readJson(json)["ok"], true);
  assert.match(json.stderr, /^loading\n┌/);
});

test("check warns of a path parameter in the notation of OpenAPI", async (t) => {
  const at = (path: string) => `{ method: "GET", path: "${path}", public: true, handle() {} }`;
  const paths = ["/a/{id}", "/b/:id{x}", "/c{/:id}?", "/d/{e}?"];
  assert.deepEqual(await warningsOf(t, paths.map(at)), [
    'GET /a/{id} matches only the text "id"; write the parameter as :id',
  ]);
});

test("check warns of an event that two endpoints declare with different schemas", async (t) => {
  const event = (schema?: object) => ({ description: "Paid", schema });
  const [text, number] = [event({ type: "string" }), event({ type: "number" })];
  const at = (path: string, emits: object) => `{ method: "GET", path: "${path}", public: true,
    emits: ${JSON.stringify(emits)}, handle() {} }`;
  const endpoints = [
    at("/a", { paid: text, same: text, once: text }),
    at("/b", { paid: number, same: text, once: event() }),
  ];
  assert.deepEqual(await warningsOf(t, endpoints), [
    "Event paid is declared with different schemas; the documents show the first",
  ]);
});

test("check lists exports and files that look like endpoints and are not served", async (t) => {
  const { folder, check } = await openWithEndpoints(t, {
    "orders.mjs": 'export default { get: { method: "GET", path: "/" } };',
    "page.tsx": "",
  });

  const people = await check();
  const json = await check("--json");

  assert.equal(people.code, 0, people.stderr);
  const section = /\nPassed over\n.*\n.*page\.tsx\n {2}default\.get {2}\S+orders\.mjs\n/;
  assert.match(people.stdout, section);
  assert.deepEqual(readJson(json)["passed_over"], [
    { file: join(folder, "page.tsx"), export: null },
    { file: join(folder, "orders.mjs"), export: "default.get" },
  ]);
});

test("check lists every load error of every module, and exits 1", async (t) => {
  const { check } = await openWithEndpoints(t, {
    "syntax.js": "export const = 1;",
    "shape.js": 'export const order = { method: "GOT", path: "/backend/x", handle() {} };',
  });

  const people = await check();
  const json = await check("--json");

  assert.equal(people.code, 1);
  assert.match(people.stderr, /syntax\.js: SyntaxError/);
  assert.match(people.stderr, /shape\.js, export order: \/method Must be/);
  assert.match(people.stderr, /shape\.js, export order: \/scope Is required/);
  assert.equal(json.code, 1);
  const { ok, faults } = readJson(json);
  assert.equal(ok, false);
  assert.ok(Array.isArray(faults) && faults.length >= 3);
});

test("check ends by itself when a module has left a timer running", async (t) => {
  const files = { "timer.js": "setInterval(() => {}, 1000);" };
  const { check } = await openWithEndpoints(t, files, { ownProcess: true });
  assert.equal((await check()).code, 0);
});
