import assert from "node:assert/strict";
import { test } from "node:test";
import type { Route } from "../../src/http/route.ts";
import { createRouter } from "../../src/http/router.ts";

function route(method: Route["method"], path: string): Route {
  return {
    method,
    path,
    access: "public",
    cors: false,
    summary: "",
    handle: () => Promise.resolve({ status: 204 }),
  };
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
      assert.equal(find("GET", path)?.route?.path, found);
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
  assert.deepEqual(find("GET", "/a/b%20c%C3%A4")?.params, { id: "b cä" });
});

test("createRouter() tells the methods of a path whose method is another", () => {
  const find = createRouter([route("GET", "/a/:id"), route("DELETE", "/a/:id")]);
  const match = find("POST", "/a/x");
  assert.equal(match?.route, undefined);
  assert.deepEqual(match?.methods.toSorted(), ["DELETE", "GET", "HEAD", "OPTIONS"]);
  assert.equal(find("HEAD", "/a/x")?.route?.method, "GET");
});
