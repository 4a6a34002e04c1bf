import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { createEgress, type EgressOptions } from "../../src/outbound/egress.ts";
import { createDocumentFetch } from "../../src/outbound/fetch_document.ts";
import { createCertificate } from "../helpers/certificate.ts";
import { readCidr } from "../helpers/cidr.ts";
import { type Reaction, type Receiver, startReceiver } from "../helpers/receiver.ts";

const LIMITS = { limitBytes: 1_024, timeoutMs: 400 };
const allow = [readCidr("127.0.0.1/32")];

let receiver: Receiver;
const opened: ReturnType<typeof createEgress>[] = [];

function open(more: Partial<EgressOptions> = {}) {
  const egress = createEgress({ allow, connectionsPerOrigin: 4, timeoutMs: 5_000, ...more });
  opened.push(egress);
  return createDocumentFetch(egress);
}

before(async () => {
  receiver = await startReceiver();
});
after(async () => {
  await Promise.all([receiver.close(), ...opened.map((egress) => egress.close())]);
});
beforeEach(() => {
  receiver.clear();
});

/** Fetches from a receiver that reacts like this. */
async function fetched(reaction: Reaction) {
  receiver.react("/", reaction);
  return await open()(`${receiver.url}/`, LIMITS);
}

const json = (body: string, headers = {}): Reaction =>
  ({ kind: "answer", status: 200, body, headers });

test("a JSON object is fetched by a GET that reveals only the User-Agent", async () => {
  const result = await fetched(json('{"a":[1]}'));
  assert.deepEqual(result, { document: { a: [1] }, freshMs: 300_000 });
  const [request] = receiver.requests();
  assert.ok(request);
  assert.deepEqual([request.method, request.body.length], ["GET", 0]);
  const names = Object.keys(request.headers).sort();
  assert.deepEqual(names, [
    "accept", "accept-encoding", "accept-language", "connection", "host", "sec-fetch-mode",
    "user-agent",
  ]);
  assert.equal(request.headers["accept-encoding"], "identity");
  assert.match(request.headers["user-agent"] ?? "", /^Gatepost\//);
});

const FRESH: readonly (readonly [cacheControl: string, seconds: number])[] = [
  ["max-age=600", 600], ["public, max-age=7200, must-revalidate", 7_200], ["MAX-AGE=600", 600],
  ["max-age=1", 300], ["no-store", 300], ["max-age=999999999", 86_400], ["max-age=x", 300],
  ["max-age=99999999999999999999", 86_400], ["s-maxage=7200", 300], ["x-max-age=7200", 300],
  ['max-age="600"', 600],
];
for (const [header, seconds] of FRESH) {
  test(`Cache-Control: ${header} makes a document fresh for ${seconds} seconds`, async () => {
    const result = await fetched(json("{}", { "cache-control": header }));
    assert.deepEqual(result, { document: {}, freshMs: seconds * 1_000 });
  });
}

const TYPES: readonly (readonly [type: string | undefined, isGood: boolean])[] = [
  [undefined, true], ["application/json", true], ["Application/JSON ; charset=utf-8", true],
  ["application/vnd.client+json", true], ["text/plain", false], ["application/octet-stream", false],
  ["text/html, application/json", false], ["application/json5", false], ["", false],
];
for (const [type, isGood] of TYPES) {
  test(`a document of type ${type} is ${isGood ? "" : "not "}accepted as JSON`, async () => {
    receiver.react("/", json("{}", type === undefined ? {} : { "content-type": type }));
    const typed = await open()(`${receiver.url}/`, { ...LIMITS, isTyped: true });
    assert.deepEqual(
      typed,
      isGood ? { document: {}, freshMs: 300_000 } : { reason: "its type is not JSON" },
    );
    assert.ok("document" in await open()(`${receiver.url}/`, LIMITS)); // many serve keys as bytes
  });
}

const filled = (length: number) => `{"a":"${"x".repeat(length - 8)}"}`;
const gzip = gzipSync("x".repeat(1_000_000)).toString("latin1");
const head = (...lines: string[]) => ["HTTP/1.1 200 OK", ...lines, "", ""].join("\r\n");

test("a document of exactly the limit is read", async () => {
  assert.ok("document" in await fetched(json(filled(LIMITS.limitBytes))));
});

const REFUSED: readonly (readonly [what: string, reaction: Reaction, reason: string])[] = [
  ["a byte too many", json(filled(1_025)), "it is longer than 1024 bytes"],
  ["an endless body", { kind: "endless" }, "it is longer than 1024 bytes"],
  ["an announced terabyte", {
    kind: "raw", bytes: `${head("content-length: 1099511627776")}${filled(2_000)}`,
  }, "it is longer than 1024 bytes"],
  ["slow bytes", { kind: "drip", everyMs: 50 }, "timeout"],
  ["no response", { kind: "hang" }, "timeout"],
  ["a redirect to a good document", {
    kind: "answer", status: 302, headers: { location: "/good" },
  }, "status 302"],
  ["a body and an error", { kind: "answer", status: 500, body: "{}" }, "status 500"],
  ["201", { kind: "answer", status: 201, body: "{}" }, "status 201"],
  ["204", { kind: "answer" }, "status 204"],
  ["a gzip bomb", {
    kind: "raw", bytes: `${head("content-encoding: gzip", "connection: close")}${gzip}`,
  }, "it is encoded"],
  ["too many encodings and a broken body", {
    kind: "raw",
    bytes: `${head(`content-encoding: ${"br, ".repeat(5)}br`, "transfer-encoding: chunked")}zz\r\n`,
  }, "it is no JSON object"],
  ["an array", json("[]"), "it is no JSON object"],
  ["null", json("null"), "it is no JSON object"],
  ["a string", json('"{}"'), "it is no JSON object"],
  ["HTML", json("<p>secret</p>"), "it is no JSON object"],
  ["nothing", json(""), "it is no JSON object"],
  ["a byte order mark", json("\u{feff}{}"), "it is no JSON object"],
  ["__proto__", json('{"__proto__":{}}'), "it is no JSON object"],
  ["deep nesting", json(`{"a":${"[".repeat(400)}${"]".repeat(400)}}`), "it is no JSON object"],
  ["a reset", { kind: "reset" }, "reset"],
  ["a response other than HTTP", { kind: "raw", bytes: "hello\r\n\r\n" }, "protocol"],
  ["half a body", {
    kind: "raw", bytes: `${head("content-length: 10")}{}`,
  }, "reset"],
];
for (const [what, reaction, reason] of REFUSED) {
  test(`a server with ${what} has no document: ${reason}`, async () => {
    receiver.react("/good", json("{}"));
    assert.deepEqual(await fetched(reaction), { reason });
    assert.equal(receiver.count("/good"), 0);
  });
}

test("the unread rest of a refused body is cancelled", async () => {
  const whole = filled(LIMITS.limitBytes);
  const cases = [[200, "it is longer than 1024 bytes"], [500, "status 500"]] as const;
  for (const [status, reason] of cases) {
    let isCancelled = false;
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from(whole)),
      pull: (controller) => controller.enqueue(Buffer.from(" ")),
      cancel: () => void (isCancelled = true),
    });
    const fetchDocument = createDocumentFetch({
      send: async () => new Response(body, { status }),
      selfTest: async () => ({ ok: true }),
    });
    assert.deepEqual(await fetchDocument(receiver.url, LIMITS), { reason });
    assert.ok(isCancelled, reason);
  }
});

test("a refused address is not connected, and looks like a missing name", async () => {
  const fetchDocument = open({ allow: [] });
  const secure = receiver.url.replace("http:", "https:");
  for (const url of [receiver.url, secure, "https://10.0.0.1/", "https://nowhere.invalid/"]) {
    assert.deepEqual(await fetchDocument(url, LIMITS), { reason: "unreachable" }, url);
  }
  assert.equal(receiver.connections(), 0);
});

test("a URL that is neither https nor http of this machine is refused", async () => {
  const everything = ["0.0.0.0/0", "::/0"].map(readCidr);
  const fetchDocument = open({ allow: everything });
  const urls = ["http://192.0.2.1/", "http://example.com/", "ftp://127.0.0.1/", "file:///etc/hosts",
    "http://127.0.0.1.example.com/", "127.0.0.1", ""];
  for (const url of urls) {
    assert.deepEqual(await fetchDocument(url, LIMITS), { reason: "its address is not https" }, url);
  }
});

test("an untrusted certificate is refused", async (t) => {
  const secure = await startReceiver({ tls: createCertificate() });
  t.after(() => secure.close());
  secure.react("/", json("{}"));
  assert.deepEqual(await open()(`${secure.url}/`, LIMITS), { reason: "tls" });
});

test("nothing is fetched if fetch does not obey the address guard", async () => {
  const urls: string[] = [];
  const fetchDocument = open({
    request: async (url) => {
      urls.push(url);
      return Response.json({});
    },
  });
  const result = await fetchDocument(`${receiver.url}/`, LIMITS);
  assert.deepEqual(result, { reason: "the address guard does not work here" });
  assert.ok(!urls.includes(`${receiver.url}/`));
});

test("a guard whose test failed is tested again, until it passes", async (t) => {
  const egress = createEgress({ allow, connectionsPerOrigin: 4, timeoutMs: 5_000 });
  t.after(() => egress.close());
  const tests = [{ ok: false, reason: "no descriptor was left" }, { ok: true }] as const;
  let tested = 0;
  const fetchDocument = createDocumentFetch({
    send: egress.send,
    selfTest: async () => tests[tested++] ?? { ok: false, reason: "once is enough" },
  });
  receiver.react("/", json("{}"));
  const results = [];
  const url = `${receiver.url}/`;
  for (let time = 0; time < 3; time++) results.push(await fetchDocument(url, LIMITS));
  assert.deepEqual(results.map((each) => "document" in each), [false, true, true]);
});
