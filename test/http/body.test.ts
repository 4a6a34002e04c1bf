import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import { MAX_FORM_BYTES } from "../../src/base/form.ts";
import { readAnyBody, readForm, readJson } from "../../src/http/body.ts";
import { sampleRequest } from "../helpers/http_request.ts";

const MAX = 100;

type Headers = Readonly<Record<string, string>>;

const send = (headers: Headers, body: string | Uint8Array) =>
  sampleRequest({ method: "POST", headers, body });
const json = (body: string | Uint8Array) => send({ "content-type": "application/json" }, body);

/** Content types, and whether JSON and a form are read from a body that has them. */
const TYPES: [what: string, headers: Headers, isJson: boolean, isForm: boolean][] = [
  ["application/json", { "content-type": "application/json" }, true, false],
  ["any case", { "content-type": "Application/JSON" }, true, false],
  ["charset utf-8", { "content-type": "application/json; charset=utf-8" }, true, false],
  ["charset in quotes and upper case", { "content-type": 'application/json;Charset="UTF-8"' }, true,
    false],
  ["charset utf8, a name that the Encoding Standard has too",
    { "content-type": "application/json; charset=utf8" }, true, false],
  ["another parameter", { "content-type": "application/json; version=1" }, true, false],
  ["a +json type", { "content-type": "application/vnd.orders.v1+json" }, true, false],
  ["a +json type outside application/", { "content-type": "text/x+json" }, true, false],
  ["identity in any case", { "content-type": "application/json", "content-encoding": "Identity" },
    true, false],
  ["another charset", { "content-type": "application/json; charset=utf-16" }, false, false],
  ["latin 1", { "content-type": "application/json; charset=ISO-8859-1" }, false, false],
  ["a form", { "content-type": "application/x-www-form-urlencoded" }, false, true],
  ["a form in UTF-8", { "content-type": "application/x-www-form-urlencoded;charset=UTF-8" }, false,
    true],
  ["a form that is labelled latin 1, as by Apache HttpClient 4",
    { "content-type": "application/x-www-form-urlencoded; charset=ISO-8859-1" }, false, true],
  ["a form in UTF-16", { "content-type": "application/x-www-form-urlencoded;charset=utf-16" },
    false, false],
  ["no type", {}, false, false],
  ["an empty type", { "content-type": "" }, false, false],
  ["text/plain, which any page may send", { "content-type": "text/plain" }, false, false],
  ["text/json", { "content-type": "text/json" }, false, false],
  ["multipart", { "content-type": "multipart/form-data; boundary=x" }, false, false],
  ["two types", { "content-type": "text/plain, application/json" }, false, false],
  ["a type with the same beginning", { "content-type": "application/jsonp" }, false, false],
  ["a type that only names JSON", { "content-type": "text/plain; application/json" }, false, false],
  ["compressed JSON", { "content-type": "application/json", "content-encoding": "gzip" }, false,
    false],
  ["plain JSON", { "content-type": "application/json", "content-encoding": "identity" }, true,
    false],
];

test("readAnyBody() checks the length of a body that is read only on demand", async () => {
  const rules = { kinds: ["other"], maxBytes: MAX, maxFormBytes: MAX, readsAll: false } as const;
  const ofLength = (length: number) =>
    readAnyBody(send({ "content-type": "image/png", "content-length": String(length) }, ""), rules);
  assert.deepEqual(await ofLength(MAX), {});
  assert.equal(await statusOf(ofLength(MAX + 1)), 413);
});

test("readAnyBody() returns the value of JSON and of a form, and all bytes", async () => {
  const rules = { kinds: ["json", "form", "other"], maxBytes: MAX, maxFormBytes: MAX } as const;
  const read = async (type: string, body: string) => {
    const request = send({ "content-type": type, "content-length": `${body.length}` }, body);
    const { value, bytes } = await readAnyBody(request, { ...rules, readsAll: true });
    return [value, String(bytes)];
  };
  const form = "application/x-www-form-urlencoded";
  assert.deepEqual(await read("application/json", '{"a":1}'), [{ a: 1 }, '{"a":1}']);
  assert.deepEqual(await read(form, "a=1"), [new URLSearchParams("a=1"), "a=1"]);
  assert.deepEqual(await read("text/plain", '{"a":1}'), [undefined, '{"a":1}']);
  assert.equal(await statusOf(read(form, `a=${"1".repeat(MAX)}`)), 413);
  assert.equal(await statusOf(read("application/json", "{")), 400);
});

describe("readJson() by content type: 415 unless it is JSON in UTF-8", () => {
  for (const [what, headers, isJson] of TYPES) {
    test(what, async () => {
      const outcome = await statusOf(readJson(send(headers, "{}"), MAX));
      assert.equal(outcome, isJson ? "read" : 415);
    });
  }
});

describe("readForm() by content type: 415 unless it is a form in UTF-8", () => {
  for (const [what, headers, , isForm] of TYPES) {
    test(what, async () => {
      const outcome = await statusOf(readForm(send(headers, "a=b")));
      assert.equal(outcome, isForm ? "read" : 415);
    });
  }
});

test("readJson() says in a 415 what it accepts", async () => {
  await assert.rejects(readJson(send({}, "{}"), MAX), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.code, "unsupported_media_type");
    assert.equal(error.headers["Accept"], "application/json");
    return true;
  });
});

for (const [what, headers] of [
  ["compressed", { "content-encoding": "gzip" }],
  ["in another charset", { "content-type": "application/json; charset=utf-16" }],
] as const) {
  test(`JSON that is ${what} gets a 415 that names the reason`, async () => {
    const request = send({ "content-type": "application/json", ...headers }, "{}");
    await assert.rejects(readJson(request, MAX), { status: 415, message: /UTF-8, not compressed/ });
  });
}

test("a 415 has Accept-Encoding: identity only if the body is encoded", async () => {
  const fields = async (headers: Headers) => {
    const request = send({ "content-type": "application/json", ...headers }, "{}");
    const error: unknown = await readJson(request, MAX).catch((reason: unknown) => reason);
    assert.ok(error instanceof Problem);
    return error.headers;
  };
  assert.deepEqual(await fields({ "content-encoding": "gzip" }), { "Accept-Encoding": "identity" });
  assert.deepEqual(await fields({ "content-type": "application/json; charset=utf-16" }), {});
});

test("readJson() reads any JSON value", async () => {
  const values: unknown[] = [{ a: [1, null, "\u00fc"] }, [], "text", 1, null, false];
  for (const value of values) {
    assert.deepEqual(await readJson(json(JSON.stringify(value)), MAX), value);
  }
});

describe("readJson() refuses with 400", () => {
  const table: [what: string, body: string | Uint8Array][] = [
    ["no body", ""],
    ["invalid JSON", "{"],
    ["two values", "{}{}"],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ["a byte order mark", "\ufeff{}"],
    ["a member named __proto__", '{"__proto__":{}}'],
    ["65 levels", "[".repeat(65) + "]".repeat(65)],
  ];
  for (const [what, body] of table) {
    test(what, async () => assert.equal(await statusOf(readJson(json(body), 1_000)), 400));
  }
});

test("readJson() accepts as many bytes as are allowed, and no more", async () => {
  const body = `"${"x".repeat(MAX - 2)}"`;
  assert.equal(await statusOf(readJson(json(body), MAX)), "read");
  assert.equal(await statusOf(readJson(json(`${body} `), MAX)), 413);
});

test("a wrong type is refused before the body is read", async () => {
  let reads = 0;
  const request = {
    ...send({ "content-type": "text/plain" }, "x"),
    readBody: () => {
      reads++;
      return Promise.resolve(Buffer.alloc(0));
    },
  };
  assert.equal(await statusOf(readJson(request, MAX)), 415);
  assert.equal(await statusOf(readForm(request)), 415);
  assert.equal(reads, 0);
});

test("a long content type takes linear time", async () => {
  const type = `application/json; charset=${" ".repeat(100_000)}x x`;
  const startMs = performance.now();
  await readJson(send({ "content-type": type }, "{}"), MAX);
  assert.ok(performance.now() - startMs < 1_000);
});

test("readForm() reads the pairs, and returns undefined for a malformed form", async () => {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const form = await readForm(send(headers, "a=b+c&d=%C3%BC"));
  assert.equal(form?.get("a"), "b c");
  assert.equal(form.get("d"), "\u00fc");
  assert.equal(await readForm(send(headers, "a=%zz")), undefined);
});

test("readForm() accepts 64 KiB and no more", async () => {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal(MAX_FORM_BYTES, 65_536);
  const body = `a=${"x".repeat(65_534)}`;
  assert.equal((await readForm(send(headers, body)))?.get("a")?.length, 65_534);
  assert.equal(await statusOf(readForm(send(headers, `${body}x`))), 413);
});

async function statusOf(reading: Promise<unknown>): Promise<number | "read"> {
  try {
    await reading;
    return "read";
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error.status;
  }
}
