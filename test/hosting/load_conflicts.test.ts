import assert from "node:assert/strict";
import { test } from "node:test";
import { writeFolder } from "../helpers/folder.ts";
import { cronjob, endpoint, errorsOf } from "./load_stage.ts";

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
