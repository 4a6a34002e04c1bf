import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addCors, corsPolicy, optionsResponse, PAGES_OF_APPS as APPS } from "../../src/api/cors.ts";
import { sampleRequest } from "../helpers/http_request.ts";

const APP = "https://orders.example";
const isAllowed = (origin: string) => Promise.resolve(origin === APP);
/** The given headers of a response, and those that addCors() adds. */
const withCors: (
  given: Record<string, string | string[]>,
  ...rest: typeof addCors extends (first: never, ...rest: infer Rest) => unknown ? Rest : never
) => Promise<Record<string, string | string[]>> = async (given, ...rest) => {
  const headers = { ...given };
  await addCors(headers, ...rest);
  return headers;
};
const from = (origin: string | undefined) =>
  sampleRequest({ method: "OPTIONS", headers: origin === undefined ? {} : { origin } });

test("addCors() lets a page of an allowed origin read the response (Fetch)", async () => {
  const headers = await withCors({}, from(APP), APPS, isAllowed);
  assert.equal(headers["Access-Control-Allow-Origin"], APP);
  assert.equal(headers["Vary"], "Origin");
  const exposed = String(headers["Access-Control-Expose-Headers"]).toLowerCase().split(", ");
  for (const name of ["location", "retry-after", "www-authenticate", "x-request-id"]) {
    assert.ok(exposed.includes(name), name);
  }
});

describe("addCors() adds only Vary for", () => {
  const table: [what: string, origin: string | undefined][] = [
    ["a request without an origin", undefined],
    ["another origin", "https://evil.example"],
    ["an origin that begins like an allowed one", `${APP}.evil.example`],
    ["an origin of another scheme", "http://orders.example"],
    ["a sandboxed page", "null"],
    ["a wildcard", "*"],
    ["an empty origin", ""],
  ];
  for (const [what, origin] of table) {
    test(what, async () => {
      assert.deepEqual(await withCors({}, from(origin), APPS, isAllowed), { Vary: "Origin" });
    });
  }
});

test("no response lets a page send cookies", async () => {
  const responses = [
    await withCors({}, from(APP), APPS, isAllowed),
    (await optionsResponse(from(APP), ["GET", "OPTIONS"], APPS, isAllowed)).headers ?? {},
  ];
  for (const headers of responses) {
    const names = Object.keys(headers).map((name) => name.toLowerCase());
    assert.ok(!names.includes("access-control-allow-credentials"));
  }
});

test("optionsResponse() answers a preflight of an allowed origin", async () => {
  const methods = ["GET", "HEAD", "OPTIONS"];
  const { status, headers, body } = await optionsResponse(from(APP), methods, APPS, isAllowed);
  assert.equal(status, 204);
  assert.equal(body, undefined);
  assert.equal(headers?.["Allow"], "GET, HEAD, OPTIONS");
  assert.equal(headers["Access-Control-Allow-Origin"], APP);
  assert.equal(headers["Access-Control-Allow-Methods"], "GET, HEAD, OPTIONS");
  assert.match(String(headers["Access-Control-Allow-Headers"]), /Authorization/);
  assert.match(String(headers["Access-Control-Allow-Headers"]), /Content-Type/);
  assert.match(String(headers["Access-Control-Max-Age"]), /^[1-9][0-9]*$/);
  assert.equal(headers["Vary"], "Origin");
});

test("a preflight allows only the requested method, or all if that is missing", async () => {
  const methods = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
  const allowed = async (method: string) => {
    const headers = { origin: APP, "access-control-request-method": method };
    const request = sampleRequest({ method: "OPTIONS", headers });
    const response = await optionsResponse(request, methods, APPS, isAllowed);
    return response.headers?.["Access-Control-Allow-Methods"];
  };
  assert.equal(await allowed("PUT"), "PUT");
  assert.equal(await allowed("HEAD"), "HEAD");
  assert.equal(await allowed("PATCH"), methods.join(", "));
});

test("optionsResponse() gives another origin only Allow and Vary", async () => {
  const request = from("https://evil.example");
  const { status, headers } = await optionsResponse(request, ["GET"], APPS, isAllowed);
  assert.equal(status, 204);
  assert.deepEqual(headers, { Allow: "GET", Vary: "Origin" });
});

test("optionsResponse() gives only Allow for a path without CORS", async () => {
  const { headers } = await optionsResponse(from(APP), ["POST", "OPTIONS"], undefined, isAllowed);
  assert.deepEqual(headers, { Allow: "POST, OPTIONS" });
});

test("addCors() keeps the headers that the response has, and adds to its Vary", async () => {
  const given = { "Vary": "Accept, Origin", "Access-Control-Allow-Origin": "*", "Allow": "GET" };
  const headers = await withCors(given, from(APP), APPS, isAllowed);
  assert.equal(headers["Access-Control-Allow-Origin"], "*");
  assert.equal(headers["Allow"], "GET");
  assert.equal(headers["Vary"], "Origin, Accept");
});

test("addCors() allows no origin while the apps cannot be read", async () => {
  const isUnknown = () => Promise.reject(new Error("disk"));
  assert.deepEqual(await withCors({}, from(APP), APPS, isUnknown), { Vary: "Origin" });
});

test("an endpoint's own origins replace those of apps", async () => {
  const policy = corsPolicy(["https://shop.example"]);
  const allowed = async (origin: string) =>
    (await withCors({}, from(origin), policy, isAllowed))["Access-Control-Allow-Origin"];
  assert.equal(await allowed("https://shop.example"), "https://shop.example");
  assert.equal(await allowed(APP), undefined);
  assert.equal((await withCors({}, from(undefined), policy, isAllowed))["Vary"], "Origin");
  const none = await withCors({}, from(APP), corsPolicy([]), isAllowed);
  assert.deepEqual(none, { Vary: "Origin" });
});

test("a response for every origin allows *, and does not vary by origin", async () => {
  const headers = await withCors({}, from("https://evil.example"), corsPolicy("*"), isAllowed);
  assert.equal(headers["Access-Control-Allow-Origin"], "*");
  assert.equal(headers["Vary"], undefined);
  assert.match(String(headers["Access-Control-Expose-Headers"]), /\bETag\b/);
});

test("an endpoint's own headers are allowed and exposed beside the usual ones", async () => {
  const policy = corsPolicy(undefined, ["X-Cart"], ["X-Total"]);
  const { headers } = await optionsResponse(from(APP), ["GET"], policy, isAllowed);
  const namesIn = (name: string) => String(headers?.[name]).toLowerCase().split(", ").sort();
  assert.deepEqual(namesIn("Access-Control-Allow-Headers"), [
    "authorization", "content-type", "idempotency-key", "if-match", "if-none-match",
    "last-event-id", "mcp-protocol-version", "mcp-session-id", "x-cart", "x-request-id",
    "x-requested-with",
  ]);
  assert.deepEqual(namesIn("Access-Control-Expose-Headers"), [
    "etag", "location", "mcp-session-id", "ratelimit", "ratelimit-policy", "retry-after",
    "www-authenticate", "x-request-id", "x-total",
  ]);
});
