import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { Server } from "node:http";
import * as net from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { parseAddress } from "../../src/base/address.ts";
import { parseCidr } from "../../src/base/cidr.ts";
import {
  createEgress,
  type Egress,
  type EgressOptions,
  type EgressRequest,
  readStart,
} from "../../src/outbound/egress.ts";
import { classifyFailure, findCode } from "../../src/outbound/failure.ts";
import { createNameLookup } from "../../src/outbound/name_lookup.ts";
import { EgressError, isReachableUrl } from "../../src/outbound/reachable.ts";
import type { NameLookup } from "../../src/outbound/name_lookup.ts";
import { LITERALS, URL_HOSTS } from "../corpus/addresses.ts";
import type { AddressCase } from "../corpus/addresses.ts";
import { openDnsServer } from "../helpers/dns_server.ts";
import type { Answerer } from "../helpers/dns_server.ts";

// Nothing public can be reached from a test: here 127.0.0.2 stands for a public address, because
// it is allowed, and 127.0.0.1 for a private one. Both have a server on the same port.
const PUBLIC = "127.0.0.2";
const PRIVATE = "127.0.0.1";
const ALLOWED = block(`${PUBLIC}/32`);

let port = 0;
const servers = new Map<string, Server>();
/** The addresses of all connections that the servers have accepted since the test began. */
let dialled: string[] = [];

before(async () => {
  for (const address of [PUBLIC, PRIVATE]) {
    const server = createServer((request, response) => {
      if (request.url?.endsWith("fade")) {
        response.writeHead(307, { location: `http://${PRIVATE}:${port}/` });
      } else if (request.url === "/close") {
        response.setHeader("connection", "close");
      }
      response.end(address);
    });
    server.on("connection", () => dialled.push(address));
    await new Promise<void>((resolve) => server.listen(port, address, resolve));
    const bound = server.address();
    if (bound !== null && typeof bound === "object") port = bound.port;
    servers.set(address, server);
  }
});
after(() => {
  for (const server of servers.values()) {
    server.close();
    server.closeAllConnections();
  }
});
beforeEach(() => {
  dialled = [];
});

function block(text: string) {
  const cidr = parseCidr(text);
  assert.ok(cidr);
  return cidr;
}

function answering(...texts: readonly string[]): NameLookup {
  return async () => texts.map(parseAddress).filter((address) => address !== undefined);
}

type Request = NonNullable<EgressOptions["request"]>;

interface Scope {
  after(end: () => unknown): void;
}

function open(t: Scope, options: Partial<EgressOptions> = {}): Egress {
  const egress = createEgress({
    allow: [ALLOWED],
    connectionsPerOrigin: 64,
    timeoutMs: 5_000,
    ...options,
  });
  t.after(() => egress.close());
  return egress;
}

/** The body of the response, or the code of the failure. */
async function send(
  egress: Egress,
  url: string,
  more: Partial<EgressRequest> = {},
): Promise<string> {
  try {
    const bounded = { signal: AbortSignal.timeout(5_000), method: "POST", body: "{}", ...more };
    const { body } = await egress.send(url, bounded);
    return await new Response(body).text();
  } catch (error) {
    return findCode(error) ?? String(error);
  }
}

function hostOf({ text }: AddressCase): string {
  return text.includes(":") && !text.startsWith("[") ? `[${text}]` : text;
}

const CORPUS = [...LITERALS, ...URL_HOSTS];

for (const scheme of ["http", "https"]) {
  for (const each of CORPUS) {
    const host = hostOf(each);
    test(`isReachableUrl() finds ${scheme}://${host} ${each.verdict}: ${each.why}`, () => {
      const url = new URL(`${scheme}://${host}:8443/path`);
      assert.equal(isReachableUrl(url, []), each.verdict === "public");
    });
  }

  test(`no refused address is dialled when written into a ${scheme} URL`, async (t) => {
    const egress = open(t, { allow: [] });
    for (const each of CORPUS.filter(({ verdict }) => verdict === "refused")) {
      assert.equal(await send(egress, `${scheme}://${hostOf(each)}:${port}/`), "EGRESS_REFUSED");
    }
    assert.deepEqual(dialled, []);
  });

  test(`no refused address is dialled when a name resolves to it over ${scheme}`, async (t) => {
    for (const { text } of LITERALS.filter(({ verdict }) => verdict === "refused")) {
      const egress = open(t, { allow: [], lookup: answering(text) });
      assert.equal(await send(egress, `${scheme}://name.example:${port}/`), "EGRESS_REFUSED", text);
    }
    assert.deepEqual(dialled, []);
  });
}

for (const url of ["ftp://8.8.8.8/", "file:///etc/hosts", "data:,x", "ws://8.8.8.8/"]) {
  test(`isReachableUrl() refuses ${url}, which is neither http nor https`, () => {
    assert.equal(isReachableUrl(new URL(url), [ALLOWED]), false);
  });
}

test("isReachableUrl() accepts names, which are checked when they are dialled", () => {
  for (const url of ["http://example.com/", "http://localhost/", "http://metadata.internal/"]) {
    assert.equal(isReachableUrl(new URL(url), []), true);
  }
});

for (const host of [PUBLIC, "127.2", "0x7f000002", "[::ffff:127.0.0.2]"]) {
  test(`an allowed block permits its addresses, also written as ${host}`, () => {
    assert.equal(isReachableUrl(new URL(`http://${host}/`), [ALLOWED]), true);
  });
}

test("an allowed literal is reached and its neighbour is not", async (t) => {
  const egress = open(t);
  assert.equal(await send(egress, `http://${PUBLIC}:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://${PRIVATE}:${port}/`), "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("a refusal is the cause of fetch's error, and is classified as unreachable", async (t) => {
  const egress = open(t, { lookup: answering(PRIVATE) });
  const failing = egress.send(`http://name.example:${port}/`, { method: "POST", body: "{}" });
  const error: unknown = await failing.catch((reason: unknown) => reason);
  assert.ok(error instanceof TypeError);
  assert.ok(error.cause instanceof EgressError);
  assert.equal(classifyFailure(error), "unreachable");
});

const MIXED: readonly (readonly string[])[] = [
  [PUBLIC, PRIVATE], [PRIVATE, PUBLIC], [PRIVATE, "10.0.0.1", "::1", PUBLIC, "fd00::1"],
  ["::ffff:127.0.0.1", "::ffff:127.0.0.2"],
];
for (const answers of MIXED) {
  test(`of the addresses ${answers.join(", ")} only the public one is dialled`, async (t) => {
    const egress = open(t, { lookup: answering(...answers) });
    assert.equal(await send(egress, `http://name.example:${port}/`), PUBLIC);
    assert.deepEqual(dialled, [PUBLIC]);
  });
}

test("a vetted address is dialled even if sockets try only one by default", async (t) => {
  t.after(() => net.setDefaultAutoSelectFamily(true));
  net.setDefaultAutoSelectFamily(false);
  const egress = open(t, { lookup: answering(PRIVATE, PUBLIC) });
  assert.equal(await send(egress, `http://name.example:${port}/`), PUBLIC);
  const shut = open(t, { lookup: answering(PRIVATE) });
  assert.equal(await send(shut, `http://name.example:${port}/`), "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("no more than eight addresses of one name are tried", async (t) => {
  const silent = [1, 2, 3, 4, 5, 6, 7, 8].map((last) => `127.0.9.${last}`);
  const allow = [block("127.0.0.0/8")];
  const eighth = open(t, { allow, lookup: answering(...silent.slice(1), PUBLIC) });
  assert.equal(await send(eighth, `http://name.example:${port}/`), PUBLIC);
  const ninth = open(t, { allow, lookup: answering(...silent, PUBLIC) });
  assert.equal(await send(ninth, `http://name.example:${port}/`), "ECONNREFUSED");
});

async function openNames(t: Scope, answer: Answerer) {
  const server = await openDnsServer((name, type, asked) => {
    const given = answer(name, type, asked);
    return type === "A" || given === "hang" ? given : [];
  });
  t.after(() => server.close());
  const readHosts = async () => `${PRIVATE} inside.example\n${PUBLIC} outside.example\n`;
  const create = (timeoutMs: number) =>
    createNameLookup({ servers: [server.address], timeoutMs, readHosts });
  return { server, create };
}

test("a name that changes from public to private is dialled once, then refused", async (t) => {
  const { server, create } = await openNames(t, (_, __, asked) => [asked === 1 ? PUBLIC : PRIVATE]);
  const egress = open(t, { lookup: create(2_000) });
  assert.equal(await send(egress, `http://rebind.example:${port}/close`), PUBLIC);
  assert.equal(server.asked("rebind.example", "A"), 1);
  assert.equal(await send(egress, `http://rebind.example:${port}/close`), "EGRESS_REFUSED");
  assert.equal(server.asked("rebind.example", "A"), 2);
  assert.deepEqual(dialled, [PUBLIC]);
});

test("a kept-alive connection keeps the address that was vetted for it", async (t) => {
  const { server, create } = await openNames(t, (_, __, asked) => [asked === 1 ? PUBLIC : PRIVATE]);
  const egress = open(t, { lookup: create(2_000), connectionsPerOrigin: 1 });
  assert.equal(await send(egress, `http://rebind.example:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://rebind.example:${port}/`), PUBLIC);
  assert.equal(server.asked("rebind.example", "A"), 1);
  assert.deepEqual(dialled, [PUBLIC]);
});

test("names of the hosts file are vetted like others, and localhost is refused", async (t) => {
  const { create } = await openNames(t, () => "no such name");
  const egress = open(t, { lookup: create(2_000) });
  assert.equal(await send(egress, `http://outside.example:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://inside.example:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://localhost:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://a.localhost.:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://missing.example:${port}/`), "NAME_LOOKUP_FAILED");
});

test("a name that hangs ends by its own timeout and delays no other", async (t) => {
  const { create } = await openNames(t, (name) => (name.startsWith("hang") ? "hang" : [PUBLIC]));
  const egress = open(t, { lookup: create(1_000), connectionsPerOrigin: 1 });
  let hung = 0;
  const hanging = Array.from({ length: 40 }, (_, index) =>
    send(egress, `http://hang${index % 20}.example:${port}/`).then((code) => {
      hung += 1;
      return code;
    }),
  );
  assert.equal(await send(egress, `http://quick.example:${port}/`), PUBLIC);
  assert.equal(hung, 0);
  assert.deepEqual(new Set(await Promise.all(hanging)), new Set(["NAME_LOOKUP_UNANSWERED"]));
});

test("an aborted request whose name hangs ends at once", async (t) => {
  const egress = open(t, { lookup: () => new Promise(() => {}), timeoutMs: 1_000 });
  const signal = AbortSignal.timeout(50);
  assert.equal(await send(egress, `http://name.example:${port}/`, { signal }), "TimeoutError");
});

test("more requests than connections all get their responses", async (t) => {
  const egress = open(t, { lookup: answering(PUBLIC), connectionsPerOrigin: 2 });
  const url = `http://name.example:${port}/`;
  const responses = await Promise.all(Array.from({ length: 12 }, () => send(egress, url)));
  assert.deepEqual(responses, new Array(12).fill(PUBLIC));
  assert.equal(dialled.length, 2);
});

test("a redirect to a refused address is not followed", async (t) => {
  const egress = open(t);
  const following = await send(egress, `http://${PUBLIC}:${port}/fade`, { redirect: "follow" });
  assert.equal(following, "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("of this service, only its receivers are reached, by their own address", async (t) => {
  const receivers = `http://${PRIVATE}:${port}/console/receiver/`;
  const egress = open(t, { allow: [], receivers, lookup: answering(PRIVATE) });
  const id = "a".repeat(32);
  assert.equal(await send(egress, receivers + id), PRIVATE);
  const tries = [
    receivers, `${receivers}${id}/`, `${receivers}${id}a`, `${receivers}${id}?a`, `${receivers}..`,
    `${receivers}../${id}`, `${receivers}%2e%2e/${id}`, `${receivers}${"a".repeat(23)}%2e%2e%2f`,
    `http://${PRIVATE}:${port}/`, `http://${PRIVATE}:${port + 1}/console/receiver/${id}`,
    ...["http://localhost", "http://[::1]", `https://${PRIVATE}`, `http://${PUBLIC}`]
      .map((host) => `${host}:${port}/console/receiver/${id}`),
  ];
  for (const url of tries) assert.equal(await send(egress, url), "EGRESS_REFUSED", url);
  assert.deepEqual(dialled, [PRIVATE]);
  const away = `${receivers}${"a".repeat(28)}fade`;
  assert.equal(await send(egress, away), PRIVATE, "a redirect is a response");
  assert.equal(await send(egress, away, { redirect: "follow" }), "EGRESS_REFUSED");
  assert.equal(await send(open(t, { allow: [] }), receivers + id), "EGRESS_REFUSED", "none here");
});

test("over https the vetted address is dialled, and gets the name in the handshake", async (t) => {
  const hello = Promise.withResolvers<string>();
  const listener = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      hello.resolve(bytes.toString("latin1"));
      socket.end("this is no TLS");
    });
  });
  t.after(() => listener.close());
  await new Promise<void>((resolve) => listener.listen(0, PUBLIC, resolve));
  const bound = listener.address();
  assert.ok(bound !== null && typeof bound === "object");
  const egress = open(t, { lookup: answering(PRIVATE, PUBLIC) });
  const url = `https://name.example:${bound.port}/`;
  const failing = egress.send(url, { method: "POST", body: "{}" });
  const error: unknown = await failing.catch((reason: unknown) => reason);
  assert.equal(classifyFailure(error), "tls");
  const bytes = await hello.promise;
  assert.equal(bytes.charCodeAt(0), 22); // a TLS handshake record
  assert.match(bytes, /name\.example/);
  assert.match(bytes, /http\/1\.1/);
  assert.doesNotMatch(bytes, /\x02h2/);
});

test("after close() nothing is sent, whether or not something was sent before", async (t) => {
  for (const isUsed of [false, true]) {
    const egress = open(t);
    if (isUsed) await send(egress, `http://${PUBLIC}:${port}/`);
    const before = dialled.length;
    await egress.close();
    assert.equal(await send(egress, `http://${PUBLIC}:${port}/`), "UND_ERR_CLOSED");
    assert.equal(dialled.length, before);
  }
});

test("readStart() does not wait for bytes that it does not need", { timeout: 5_000 }, async () => {
  let isCancelled = false;
  const body = new ReadableStream({
    start(controller) {
      for (const text of ["ab", "cd"]) controller.enqueue(Buffer.from(text));
    },
    cancel: () => void (isCancelled = true),
  });
  assert.equal(String(await readStart(new Response(body), 4)), "abcd");
  assert.ok(isCancelled);
});

test("selfTest() passes with this Node's fetch, whatever is allowed", async (t) => {
  assert.deepEqual(await open(t, { allow: [] }).selfTest(), { ok: true });
  assert.deepEqual(await open(t, { allow: [block("127.0.0.0/8")] }).selfTest(), { ok: true });
});

const SELF_TEST_FAILURES: readonly (readonly [string, Request, RegExp])[] = [
  ["reaches nothing", () => Promise.reject(new TypeError("fetch failed")), /was not reached/],
  ["gets another server's response", async () => new Response("hello"), /something else/],
  ["never dials", passOrRefuse(async () => new Response(null, { status: 204 })), /no request/],
  ["ignores the guard", postAlike, /was not refused/],
  ["ignores it for https alone", (url, init) => {
    return url.startsWith("https:") ? postAlike(url) : fetch(url, init);
  }, /^https:.* was not refused/],
  ["dials before it refuses", passOrRefuse(postAlike), /opened a connection/],
  ["sends no body", (url) => post(url, ""), /body/],
];
for (const [what, request, reason] of SELF_TEST_FAILURES) {
  test(`selfTest() detects a fetch that ${what}`, async (t) => {
    const outcome = await open(t, { request }).selfTest();
    assert.ok(!outcome.ok);
    assert.match(outcome.reason, reason);
  });
}

test("selfTest() reports a shortage of descriptors in this process", async (t) => {
  // Without a descriptor to dial with, and without one for the listener to accept with.
  for (const code of ["EMFILE", "UND_ERR_SOCKET", "ECONNRESET"]) {
    const cause = Object.assign(new Error("no descriptor"), { code });
    const request = () => Promise.reject(new TypeError("fetch failed", { cause }));
    const outcome = await open(t, { request }).selfTest();
    assert.ok(!outcome.ok);
    assert.equal(outcome.code, "EMFILE");
  }
});

test("selfTest() reports the error that came instead of a refusal", async (t) => {
  const ended = new DOMException("Too slow", "TimeoutError");
  for (const [dials, code] of [[false, "TimeoutError"], [true, undefined]] as const) {
    let sent = 0;
    const request: Request = async (url) => {
      sent += 1;
      const response = sent <= 2 || dials ? await postAlike(url) : undefined;
      if (sent > 2 || !response) throw ended;
      return response;
    };
    const outcome = await open(t, { request }).selfTest();
    assert.ok(!outcome.ok);
    assert.match(outcome.reason, /was not refused/);
    assert.equal(outcome.code, code);
  }
});

/** What the self-test sends to its listener, without looking its name up and without TLS. */
function post(url: string, body: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${new URL(url).port}/`, { method: "POST", body });
}

function postAlike(url: string): Promise<Response> {
  return post(url, '"gatepost"');
}

/** Passes the self-test's first two requests, and refuses the others after sending them. */
function passOrRefuse(request: (url: string) => Promise<Response>): Request {
  let sent = 0;
  return async (url) => {
    sent += 1;
    const response = await request(url);
    if (sent > 2) throw new EgressError("EGRESS_REFUSED", "too late");
    return response;
  };
}

test("without undici's Agent nothing is sent and selfTest() fails", async (t) => {
  const key = Symbol.for("undici.globalDispatcher.2");
  const current: unknown = Reflect.get(globalThis, key);
  t.after(() => Reflect.set(globalThis, key, current));
  Reflect.set(globalThis, key, { dispatch() {} });
  const egress = open(t);
  assert.equal(await send(egress, `http://${PUBLIC}:${port}/`), "EGRESS_UNSUPPORTED");
  assert.equal((await egress.selfTest()).ok, false);
  assert.deepEqual(dialled, []);
});
