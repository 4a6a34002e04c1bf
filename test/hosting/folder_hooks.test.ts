import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { LoadedEndpoint } from "../../src/hosting/check_endpoint.ts";
import { loadEndpoints } from "../../src/hosting/load.ts";
import { writeFolder } from "../helpers/folder.ts";
import { callHosted } from "../helpers/hosting.ts";
import { errorsOf } from "./load_stage.ts";

const at = (path: string, more = "") =>
  `{ method: "GET", path: "${path}", public: true, handle: ({ way }) => way, ${more} }`;
const before = (name: string) =>
  `export async function before(context) { (context.way ??= []).push("${name}"); }`;
const onError = (name: string) =>
  `export function onError(error) { error.push("${name}"); if (error.length > 2) return {
    status: 409, detail: error.join() }; }`;

/** Calls every endpoint of these modules; the JSON of each response, by path. */
async function callAll(t: TestContext, files: Readonly<Record<string, string>>) {
  const { endpoints } = await loadEndpoints(await writeFolder(t, files));
  const outcomes = endpoints.map(async (endpoint: LoadedEndpoint) =>
    [endpoint.pattern.text, (await callHosted(endpoint)).json] as const
  );
  return Object.fromEntries(await Promise.all(outcomes));
}

const errorOf = async (t: TestContext, files: Readonly<Record<string, string>>) =>
  (await errorsOf(await writeFolder(t, files))).join("\n");

test("before() of a folder runs for all endpoints in and below it, outermost first", async (t) => {
  const own = 'before(context) { context.way.push("own"); }';
  assert.deepEqual(
    await callAll(t, {
      "a.mjs": `export const x = ${at("/a")};`,
      "z.mjs": before("root"),
      "shop/a.mjs": `export const x = ${at("/shop", own)};`,
      "shop/deep/er/a.mjs": `${before("er")} export const all = [${at("/er", own)}];`,
      "shop/hooks.mjs": before("shop"),
      "shopping/a.mjs": `export const x = ${at("/shopping")};`,
    }),
    {
      "/a": ["root"],
      "/shop": ["root", "shop", "own"],
      "/shopping": ["root"],
      "/er": ["root", "shop", "er", "own"],
    },
  );
});

test("onError() of a folder gets the errors of its endpoints, the innermost first", async (t) => {
  const { "/x": json } = await callAll(t, {
    "a.mjs": onError("root"),
    "b/a.mjs": onError("b"),
    "b/c/a.mjs": `${onError("c")} export const x = { method: "GET", path: "/x", public: true,
      handle() { throw ["thrown"]; } };`,
    "d/a.mjs": onError("d"),
  });
  assert.partialDeepStrictEqual(json, { detail: "thrown,c,b" });
});

test("an endpoint that is exported again elsewhere keeps the hooks of its folder", async (t) => {
  assert.deepEqual(
    await callAll(t, {
      "a.mjs": 'export * from "./secure/a.mjs";',
      "secure/a.mjs": `export const x = ${at("/x")};`,
      "secure/hooks.mjs": before("secure"),
      "secure/more.mjs": 'export { before } from "./hooks.mjs";',
    }),
    { "/x": ["secure"] },
  );
});

test("an endpoint that a link also leads to keeps the hooks of its own folder", async (t) => {
  const folder = await writeFolder(t, {
    "secure/hooks.mjs": before("secure"),
    "secure/deep/x.mjs": `export const x = ${at("/x")};`,
    "secure/deep/more.mjs": before("deep"),
  });
  await symlink("secure/deep", join(folder, "a"));
  await symlink("..", join(folder, "secure/up"));
  const { endpoints: [endpoint, ...others] } = await loadEndpoints(folder);
  assert.ok(endpoint && others.length === 0);
  assert.deepEqual((await callHosted(endpoint)).json, ["secure", "deep"]);
});

test("hooks also work for a folder given by a relative path", async (t) => {
  const folder = await writeFolder(t, {
    "a.mjs": `${before("root")} export const x = ${at("/x")};`,
  });
  const cwd = process.cwd();
  t.after(() => process.chdir(cwd));
  process.chdir(folder);
  const { endpoints: [endpoint] } = await loadEndpoints(".");
  assert.equal(endpoint?.before.length, 1);
});

test("cronjobs have no hooks", async (t) => {
  const job = 'export const job = { name: "x", every: "5m", run() {} };';
  const { cronjobs } = await loadEndpoints(await writeFolder(t, { "a.mjs": before("a") + job }));
  assert.deepEqual(Object.keys(cronjobs[0] ?? {}).sort(), [
    ...["everyMs", "exportName", "file", "name", "run"],
  ]);
});

test("two hooks of one kind in a folder, or one that is no function, are an error", async (t) => {
  assert.equal(
    await errorOf(t, { "a.mjs": before("a"), "b.mjs": before("b"), "c/a.mjs": before("c") }),
    "b.mjs, export before: its folder has before of a.mjs already",
  );
  assert.equal(
    await errorOf(t, { "a.mjs": onError("a"), "b.mjs": onError("b") }),
    "b.mjs, export onError: its folder has onError of a.mjs already",
  );
  for (const value of ["{}", "[() => {}]", "undefined", at("/x")]) {
    assert.equal(
      await errorOf(t, { "a.mjs": `export const before = ${value};` }),
      "a.mjs, export before: must be a function",
    );
  }
});
