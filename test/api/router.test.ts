import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import type { Operation } from "../../src/api/operation.ts";
import { checkPath, createRouter } from "../../src/api/router.ts";
import { sampleOperation } from "../helpers/operation.ts";

function route(method: Operation["method"], path: string): Operation {
  return sampleOperation({ method, path });
}

/** The patterns of the routes, and the pattern that each path matches. */
const PATHS = [
  "/a/:id",
  "/a/:id/b",
  "/a/:id/b/:other",
  "/a/fixed/:id",
  "/a/:id/:other",
  "/a/fixed",
  "/a/fixed/:id/c",
];
const FOUND = [
  ["/a/fixed", "/a/fixed"],
  ["/a/x", "/a/:id"],
  ["/a/x/b", "/a/:id/b"],
  ["/a/fixed/b", "/a/fixed/:id"],
  ["/a/fixed/x", "/a/fixed/:id"],
  ["/a/x/y", "/a/:id/:other"],
  ["/a/fixed/b/c", "/a/fixed/:id/c"],
  ["/a/fixed/b/x", "/a/:id/b/:other"],
  ["/a/x/b/c", "/a/:id/b/:other"],
] as const;

for (const [name, order] of [["in order", PATHS], ["reversed", PATHS.toReversed()]] as const) {
  const find = createRouter(order.map((path) => route("GET", path)));
  for (const [path, found] of FOUND) {
    test(`createRouter() with routes ${name}: ${path} matches ${found}`, () => {
      assert.equal(find("GET", path)?.operation?.path, found);
    });
  }
}

test("createRouter() finds nothing for another number of segments or an empty segment", () => {
  const find = createRouter(PATHS.map((path) => route("GET", path)));
  for (const path of ["/a", "/a/", "/a/x/y/z", "/a//b", "/A/x", "/a/x/b/c/d"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

test("createRouter() lists the methods of a path that lacks the request's method", () => {
  const find = createRouter([route("GET", "/a/:id"), route("DELETE", "/a/:id")]);
  const match = find("POST", "/a/x");
  assert.equal(match?.operation, undefined);
  assert.deepEqual(match?.methods.toSorted(), ["DELETE", "GET", "HEAD", "OPTIONS"]);
  assert.equal(find("HEAD", "/a/x")?.operation?.method, "GET");
});

test("createRouter() distinguishes upper and lower case, and accepts no trailing slash", () => {
  const find = createRouter([route("GET", "/consumer/event")]);
  assert.ok(find("GET", "/consumer/event"));
  for (const path of ["/consumer/event/", "/Consumer/event", "/consumer//event", "/"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

test("createRouter() finds a literal path by its exact text, not in encoded form", () => {
  const find = createRouter([route("GET", "/consumer/event")]);
  assert.equal(find("GET", "/consumer/%65vent"), undefined);
});

test("createRouter() knows only the methods that it was given, in the same case", () => {
  const find = createRouter([route("POST", "/a")]);
  for (const method of ["GET", "HEAD", "post", "TRACE", "CONNECT", "toString", "__proto__", ""]) {
    const match = find(method, "/a");
    assert.equal(match?.operation, undefined, method);
    assert.deepEqual(match?.methods.toSorted(), ["OPTIONS", "POST"]);
  }
});

test("createRouter() finds no path that is named like a member of every object", () => {
  const find = createRouter([route("GET", "/a")]);
  for (const path of ["__proto__", "constructor", "/__proto__"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

describe("checkPath() accepts", () => {
  const table = [
    "/",
    "/a",
    "/a/b%20c",
    "/a/%C3%BC",
    "/a/...",
    "/a/..b",
    "/a/.well-known",
    "/.well-known/jwks.json",
    "/a/b.c",
    "/a/%252e",
    "/a//b",
    "/a;b=c",
    "/a/~user",
  ];
  for (const path of table) {
    test(path, () => assert.equal(checkPath(path), path));
  }
});

test("checkPath() encodes the characters that URLPattern encodes", () => {
  assert.equal(checkPath("/a\"b/`<>^{}?#"), "/a%22b/%60%3C%3E%5E%7B%7D%3F%23");
});

describe("checkPath() refuses with 400", () => {
  const table: [what: string, path: string][] = [
    ["a dot segment", "/a/./b"],
    ["a dot segment at the end", "/a/."],
    ["two dots", "/a/../b"],
    ["two dots at the beginning", "/.."],
    ["two dots at the end", "/a/.."],
    ["encoded dots", "/a/%2e%2e/b"],
    ["encoded dots in upper case", "/a/%2E%2E"],
    ["two dots, the second encoded", "/a/.%2e/b"],
    ["two dots, the first encoded", "/a/%2e./b"],
    ["an encoded single dot", "/%2e/b"],
    ["an encoded slash", "/a%2fb"],
    ["an encoded slash in upper case", "/a%2Fb"],
    ["an encoded backslash", "/a%5cb"],
    ["an encoded backslash in upper case", "/a%5Cb"],
    ["a backslash", "/a\\b"],
    ["a NUL", "/a\u0000"],
    ["a space", "/a b"],
    ["a tab", "/a\tb"],
    ["a line feed", "/a\nb"],
    ["a line feed at the end", "/a\n"],
    ["a DEL", "/a\u007f"],
    ["a character outside ASCII", "/\u00fc"],
    ["no leading slash", "a"],
    ["a whole URL", "http://evil.example/a"],
    ["an asterisk", "*"],
    ["an empty path", ""],
  ];
  for (const [what, path] of table) {
    test(what, () => assert.throws(() => checkPath(path), isMalformed));
  }
});

test("checkPath() takes linear time", () => {
  const startMs = performance.now();
  for (const piece of ["/", ".", "/.", "%2", "%2e", "/a"]) {
    try {
      checkPath(`/${piece.repeat(200_000)}`);
    } catch (error) {
      assert.ok(isMalformed(error));
    }
  }
  assert.ok(performance.now() - startMs < 1_000);
});

function isMalformed(error: unknown): boolean {
  assert.ok(error instanceof Problem);
  assert.equal(error.status, 400);
  return true;
}
