import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import type { Operation } from "../../src/api/operation.ts";
import { checkPath, createRouter } from "../../src/api/router.ts";
import { sampleOperation } from "../helpers/operation.ts";

function route(method: Operation["method"], path: string): Operation {
  return sampleOperation({ method, path });
}

/** Paths as `order` has them, and which of them answers what. */
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
    test(`createRouter() with routes ${name}: ${path} is answered by ${found}`, () => {
      assert.equal(find("GET", path)?.operation?.path, found);
    });
  }
}

test("createRouter() finds nothing for another number of segments or an empty one", () => {
  const find = createRouter(PATHS.map((path) => route("GET", path)));
  for (const path of ["/a", "/a/", "/a/x/y/z", "/a//b", "/A/x", "/a/x/b/c/d"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

test("createRouter() decodes parameters", () => {
  const find = createRouter([route("GET", "/a/:id")]);
  assert.deepEqual({ ...find("GET", "/a/b%20c%C3%A4")?.params }, { id: "b cä" });
});

test("createRouter() tells the methods of a path whose method is another", () => {
  const find = createRouter([route("GET", "/a/:id"), route("DELETE", "/a/:id")]);
  const match = find("POST", "/a/x");
  assert.equal(match?.operation, undefined);
  assert.deepEqual(match?.methods.toSorted(), ["DELETE", "GET", "HEAD", "OPTIONS"]);
  assert.equal(find("HEAD", "/a/x")?.operation?.method, "GET");
});

test("createRouter() takes paths by case, and no slash behind", () => {
  const find = createRouter([route("GET", "/consumer/event")]);
  assert.ok(find("GET", "/consumer/event"));
  for (const path of ["/consumer/event/", "/Consumer/event", "/consumer//event", "/"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

test("createRouter() finds a literal path by its exact text, an encoded one not", () => {
  const find = createRouter([route("GET", "/consumer/event")]);
  assert.equal(find("GET", "/consumer/%65vent"), undefined);
});

test("createRouter() knows no method but those it was given, by case", () => {
  const find = createRouter([route("POST", "/a")]);
  for (const method of ["GET", "HEAD", "post", "TRACE", "CONNECT", "toString", "__proto__", ""]) {
    const match = find(method, "/a");
    assert.equal(match?.operation, undefined, method);
    assert.deepEqual(match?.methods.toSorted(), ["OPTIONS", "POST"]);
  }
});

test("createRouter() answers a broken parameter with 400, whoever asks", () => {
  const find = createRouter([route("GET", "/a/:id")]);
  for (const path of ["/a/%", "/a/%zz", "/a/%ff", "/a/%c3"]) {
    assert.throws(() => find("GET", path), isMalformed, path);
  }
});

test("createRouter() keeps paths apart that objects would not", () => {
  const find = createRouter([route("GET", "/a")]);
  for (const path of ["__proto__", "constructor", "/__proto__"]) {
    assert.equal(find("GET", path), undefined, path);
  }
});

describe("checkPath() takes", () => {
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

test("checkPath() encodes what URLPattern does", () => {
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
    ["half encoded dots", "/a/.%2e/b"],
    ["the other half", "/a/%2e./b"],
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
    ["what is not ASCII", "/\u00fc"],
    ["no slash in front", "a"],
    ["a whole URL", "http://evil.example/a"],
    ["an asterisk", "*"],
    ["nothing", ""],
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
