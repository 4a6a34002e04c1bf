import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import { METHODS } from "../../src/base/http_message.ts";
import type { Operation } from "../../src/api/operation.ts";
import { checkPath, createRouter, type RouteMatch } from "../../src/api/router.ts";
import { sampleOperation } from "../helpers/operation.ts";
import { openRandom } from "../helpers/random.ts";

function route(line: string): Operation {
  const [name, path = ""] = line.split(" ");
  const method = METHODS.find((each) => each === name);
  assert.ok(method, line);
  return sampleOperation({ method, path });
}

function show(match: RouteMatch | undefined): unknown {
  if (match?.operation) return [match.operation.path, { ...match.params }];
  return match?.methods.join(", ");
}

test("a path leads to the most literal pattern, segment by segment, whatever the order", () => {
  const cases: [patterns: string[], path: string, text: string | undefined][] = [
    [["/orders/new", "/orders/:id", "/orders/*"], "/orders/new", "/orders/new"],
    [["/orders/new", "/orders/:id", "/orders/*"], "/orders/7", "/orders/:id"],
    [["/orders/new", "/orders/:id", "/orders/*"], "/orders/7/x", "/orders/*"],
    [["/:a/new", "/orders/:id"], "/orders/new", "/orders/:id"],
    [["/:a/new", "/orders/:id"], "/x/new", "/:a/new"],
    [["/:a/new", "/orders/:id"], "/x/y", undefined],
    [["/a/:b/c", "/a/*"], "/a/x/c", "/a/:b/c"],
    [["/a/:b/c", "/a/*"], "/a/x/d", "/a/*"],
    [["/a/*", "/*"], "/a/b", "/a/*"],
    [["/a/*", "/*"], "/b", "/*"],
    [["/*/b", "/a/*"], "/a/b", "/a/*"],
    [["/a/*", "/a/*/b"], "/a/x/b", "/a/*/b"],
    [["/a/*", "/a/*/b"], "/a/x/c", "/a/*"],
    [["/a", "/a/:b?"], "/a", "/a"],
    [["/a/:b", "/a/:b?"], "/a/x", "/a/:b"],
    [["/a/:b?"], "/a", "/a/:b?"],
    [["/a/:id(\\d+)", "/a/:id"], "/a/12", "/a/:id(\\d+)"],
    [["/a/:id(\\d+)", "/a/:id"], "/a/1x", "/a/:id"],
    [["/a/:id.json", "/a/:id"], "/a/x.json", "/a/:id.json"],
    [["/a/:id.json", "/a/:id"], "/a/x.xml", "/a/:id"],
    [["/a/:id.b", "/a/:id.a.b"], "/a/x.a.b", "/a/:id.a.b"],
    [["/a/:id.json", "/a/x.json"], "/a/x.json", "/a/x.json"],
    [["/files/:path+"], "/files/a/b/c", "/files/:path+"],
    [["/", "/:a"], "/", "/"],
    [["/:a"], "/", undefined],
    [["/a"], "/A", undefined],
    [["/a"], "/a/", undefined],
    [["/a/:b"], "/a/", undefined],
    [["/a/:b"], "/a", undefined],
    [["/a/:b"], "/a/x/y", undefined],
    [["/café"], "/caf%C3%A9", "/café"],
    [["/x\\:y"], "/x:y", "/x\\:y"],
    [["/((?:a(?:b(?:c)?)?))/x"], "/abc/x", "/((?:a(?:b(?:c)?)?))/x"],
    [[], "/", undefined],
  ];
  for (const [patterns, path, text] of cases) {
    for (const ordered of [patterns, patterns.toReversed()]) {
      const match = createRouter(ordered.map((pattern) => route(`GET ${pattern}`)))("GET", path);
      assert.equal(match?.operation?.path, text, `${path} of ${ordered.join(" ")}`);
    }
  }
});

test("parameters are percent-decoded", () => {
  const cases: [pattern: string, path: string, params: Record<string, string>][] = [
    ["/a/:id", "/a/x%20y", { id: "x y" }],
    ["/a/:id", "/a/caf%C3%A9", { id: "café" }],
    ["/a/:id", "/a/x+y", { id: "x+y" }],
    ["/a/:id", "/a/%2525", { id: "%25" }],
    ["/a/:id", "/a/x;y=1", { id: "x;y=1" }],
    ["/a/:id", "/a/\"é", { id: "\"é" }],
    ["/:a/x/:b", "/1/x/2", { a: "1", b: "2" }],
    ["/files/*", "/files/a%20b/c", { 0: "a b/c" }],
    ["/a/:id(\\d+).:type", "/a/7.p%64f", { id: "7", type: "pdf" }],
    ["/a/:b?", "/a", {}],
    ["/a", "/a", {}],
  ];
  for (const [pattern, path, params] of cases) {
    const match = createRouter([route(`GET ${pattern}`)])("GET", path);
    assert.deepEqual(show(match), [pattern, params], path);
  }
});

test("params have no inherited members", () => {
  for (const path of ["/a", "/:x", "/*"]) {
    const match = createRouter([route(`GET ${path}`)])("GET", "/a");
    assert.ok(match?.operation);
    assert.equal(match.params["toString"], undefined, path);
  }
});

test("broken percent-encoding in a parameter is a 400", () => {
  for (const path of ["/a/%zz", "/a/%", "/a/%ff", "/a/%C3", "/a/x%2"]) {
    for (const pattern of ["/a/:id", "/a/*"]) {
      assert.throws(
        () => createRouter([route(`GET ${pattern}`)])("GET", path),
        (error) => error instanceof Problem && error.status === 400 && error.code === "malformed",
        `${path} on ${pattern}`,
      );
    }
  }
});

test("patterns without the method are passed over, and 405 lists the methods of all", () => {
  const match = createRouter([
    route("POST /orders"),
    route("GET /orders/new"),
    route("POST /orders/:id"),
    route("DELETE /orders/*"),
    route("GET /ping"),
  ]);
  const cases: [method: string, path: string, outcome: unknown][] = [
    ["POST", "/orders/new", ["/orders/:id", { id: "new" }]],
    ["DELETE", "/orders/new", ["/orders/*", { 0: "new" }]],
    ["HEAD", "/orders/new", ["/orders/new", {}]],
    ["HEAD", "/orders", "POST, OPTIONS"],
    ["GET", "/orders/7", "POST, DELETE, OPTIONS"],
    ["PUT", "/orders/new", "GET, HEAD, POST, DELETE, OPTIONS"],
    ["OPTIONS", "/ping", "GET, HEAD, OPTIONS"],
    ["get", "/ping", "GET, HEAD, OPTIONS"],
    ["GET", "/nothing", undefined],
    ["OPTIONS", "/nothing", undefined],
  ];
  for (const [method, path, outcome] of cases) {
    assert.deepEqual(show(match(method, path)), outcome, `${method} ${path}`);
  }
});

test("matching agrees with URLPattern on random patterns and paths", (t) => {
  const random = openRandom(t);
  const pieces = [
    ...["a", "b", "ab", "a.b", "ä", "x y", "%20", "-", "~", "a:b", "'"],
    ...["{", "|", "^", "\"", "...", "`", "<>"],
  ];
  const specials = [":p", ":q", ":r", "*", ":s?", ":t(\\d+)", ":u.json", "{a}?"];
  let matched = 0;
  for (let round = 0; round < 2_000; round++) {
    const depth = 1 + random.below(3);
    const wanted = Array.from({ length: depth }, () =>
      random.chance(50) ? random.pick(specials) : random.pick(["a", "b", "ab", "ä", "x y", "a.b"]));
    if (new Set(wanted.filter((part) => part.startsWith(":"))).size <
      wanted.filter((part) => part.startsWith(":")).length) continue;
    const text = `/${wanted.join("/")}`;
    const tails = ["", "", "", "", "", "", "", "", "/", "/z"];
    const match = createRouter([route(`GET ${text.replaceAll(" ", "%20")}`)]);
    const reference = new URLPattern({ pathname: text });
    for (let tries = 0; tries < 10; tries++) {
      const given = wanted.map((part) =>
        random.chance(30)
          ? random.pick(pieces)
          : part.replace(/^[:*{].*/, random.pick(["7", "a"]))
      );
      // Encoded as clients do.
      const path = `/${given.join("/")}${random.pick(tails)}`
        .replace(/[^!-~]/g, encodeURIComponent);
      const result = reference.exec({ pathname: path });
      const groups = Object.entries(result?.pathname.groups ?? {})
        .flatMap(([name, value]) => value === undefined ? [] : [[name, decodeURIComponent(value)]]);
      const found = match("GET", checkPath(path));
      const expected = result === null ? undefined : text.replaceAll(" ", "%20");
      assert.equal(found?.operation?.path, expected);
      if (!found) continue;
      matched++;
      assert.deepEqual({ ...found.params }, Object.fromEntries(groups), `${text} on ${path}`);
    }
  }
  assert.ok(matched > 1_000, `only ${matched} pairs matched`);
});

test("percent-encodings are the same in both cases (RFC 3986 §6.2.2.1)", () => {
  const match = createRouter([route("GET /café/:x"), route("GET /%c3%bc")]);
  const find = (path: string) => show(match("GET", checkPath(path)));
  for (const path of ["/caf%c3%a9/%c3%a4b", "/caf%C3%a9/%C3%A4b"]) {
    assert.deepEqual(find(path), ["/café/:x", { x: "äb" }]);
  }
  for (const path of ["/%c3%bc", "/%C3%BC"]) assert.deepEqual(find(path), ["/%c3%bc", {}]);
});

test("each of a thousand patterns leads to its own endpoint", () => {
  const routes = Array.from({ length: 1_000 }, (_, index) => route(`GET /api/v1/r${index}/:id`));
  const match = createRouter(routes);
  for (const index of routes.keys()) {
    assert.deepEqual(show(match("GET", `/api/v1/r${index}/x`)), [
      `/api/v1/r${index}/:id`,
      { id: "x" },
    ]);
  }
});
