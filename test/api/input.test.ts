import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readBody, readQuery } from "../../src/api/input.ts";
import { FLAG, listOf, object, oneOf, optional, type Shape, TEXT } from "../../src/base/shape.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { pointersOf } from "../helpers/problem.ts";

const QUERY = {
  name: optional(TEXT),
  state: optional(oneOf("on", "off")),
  order: optional(TEXT, "new"),
};

describe("readQuery()", () => {
  test("reads the parameters of the operation, and ignores others", () => {
    assert.deepEqual(readQuery("name=b+c%2Fd&colour=red", QUERY), { name: "b c/d", order: "new" });
    assert.deepEqual(readQuery("state=on&order=old", QUERY), { state: "on", order: "old" });
  });
  test("treats an empty parameter as missing (RFC 6749 §3.1)", () => {
    assert.deepEqual(readQuery("name=&state=&order=", QUERY), { order: "new" });
  });
  test("reports every error at once, and says that they are in the query", () => {
    assert.deepEqual(pointersOf(() => readQuery("state=x&name=1&name=2", QUERY)), [
      "/name",
      "/state",
    ]);
    assert.throws(() => readQuery("state=x", QUERY), { message: /query/ });
  });
  test("accepts an unknown parameter that is given twice", () => {
    assert.deepEqual(readQuery("a=1&a=2", QUERY), { order: "new" });
  });
  for (const query of ["a=%", "a=%zz", "a=%ff", "\u00fc=1"]) {
    test(`refuses the malformed query ${query}`, () => {
      assert.throws(() => readQuery(query, QUERY), { status: 400, code: "malformed" });
    });
  }
});

const BODY = object({ names: listOf(TEXT), isGood: optional(FLAG, false) });

function read(
  body: Shape<unknown>,
  text: string | undefined,
  limitBytes = 1000,
  given?: Readonly<Record<string, string>>,
) {
  const length = String(Buffer.byteLength(text ?? ""));
  const headers = given ?? { "content-type": "application/json", "content-length": length };
  const request = sampleRequest(text === undefined ? {} : { headers, body: text });
  return readBody(body, request, limitBytes);
}

describe("readBody()", () => {
  test("returns the body as parsed by its shape", async () => {
    const body = await read(BODY, '{"names": ["a", "b", "a"]}');
    assert.deepEqual(body, { names: ["a", "b"], isGood: false });
  });
  test("reports every error at once, and says that they are in the body", async () => {
    await assert.rejects(read(BODY, '{"names": [1], "isGood": 1, "x": 1}'), (error: unknown) => {
      assert.match((error as Error).message, /body/);
      const pointers = pointersOf(() => {
        throw error;
      });
      assert.deepEqual(pointers, ["/names/0", "/isGood", "/x"]);
      return true;
    });
  });
  test("returns undefined for a missing or empty body where the body is optional", async () => {
    assert.equal(await read(optional(BODY), undefined), undefined);
    assert.equal(await read(optional(BODY), ""), undefined); // some clients always send a type
  });
  test("treats an empty chunked body as missing where the body is optional", async () => {
    const headers = { "transfer-encoding": "chunked" };
    assert.equal(await read(optional(BODY), "", 1000, headers), undefined);
    await assert.rejects(read(BODY, "", 1000, headers), { status: 415 });
    await assert.rejects(read(optional(BODY), "{}", 1000, headers), { status: 415 });
  });
  test("parses an optional body that is present", async () => {
    assert.deepEqual(await read(optional(BODY), '{"names": []}'), { names: [], isGood: false });
    await assert.rejects(read(optional(BODY), "null"), { status: 400 });
  });
  test("refuses a request without a required body", async () => {
    await assert.rejects(read(BODY, undefined), { status: 415 });
  });
  test("refuses a body that is not JSON", async () => {
    await assert.rejects(read(BODY, "{"), { status: 400, code: "malformed" });
  });
  test("refuses a body that exceeds the limit", async () => {
    const text = '{"names": []}';
    assert.deepEqual(await read(BODY, text, text.length), { names: [], isGood: false });
    await assert.rejects(read(BODY, text, text.length - 1), { status: 413 });
  });
});
