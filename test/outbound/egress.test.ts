import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import * as net from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { parseAddress } from "../../src/base/address.ts";
import { type Egress, type EgressRequest, readStart } from "../../src/outbound/egress.ts";
import { classifyFailure, findCode } from "../../src/outbound/failure.ts";
import { createNameLookup, type NameLookup } from "../../src/outbound/name_lookup.ts";
import { EgressError } from "../../src/outbound/reachable.ts";
import { HOSTS, LITERALS } from "../corpus/addresses.ts";
import { readCidr } from "../helpers/cidr.ts";
import { type Answerer, openDnsServer } from "../helpers/dns_server.ts";
import { openEgress, PRIVATE, PUBLIC, type Scope } from "./egress_stage.ts";

/** Both addresses have a server on this port. */
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

function answering(...texts: readonly string[]): NameLookup {
  return async () => texts.map(parseAddress).filter((address) => address !== undefined);
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

for (const scheme of ["http", "https"]) {
  test(`no refused address is dialled when written into a ${scheme} URL`, async (t) => {
    const egress = openEgress(t, { allow: [] });
    for (const { text } of HOSTS.filter(({ verdict }) => verdict === "refused")) {
      assert.equal(await send(egress, `${scheme}://${text}:${port}/`), "EGRESS_REFUSED");
    }
    assert.deepEqual(dialled, []);
  });

  test(`no refused address is dialled when a name resolves to it over ${scheme}`, async (t) => {
    for (const { text } of LITERALS.filter(({ verdict }) => verdict === "refused")) {
      const egress = openEgress(t, { allow: [], lookup: answering(text) });
      assert.equal(await send(egress, `${scheme}://name.example:${port}/`), "EGRESS_REFUSED", text);
    }
    assert.deepEqual(dialled, []);
  });
}

test("an allowed literal is reached and its neighbour is not", async (t) => {
  const egress = openEgress(t);
  assert.equal(await send(egress, `http://${PUBLIC}:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://${PRIVATE}:${port}/`), "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("a refusal is the cause of fetch's error, and is classified as unreachable", async (t) => {
  const egress = openEgress(t, { lookup: answering(PRIVATE) });
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
    const egress = openEgress(t, { lookup: answering(...answers) });
    assert.equal(await send(egress, `http://name.example:${port}/`), PUBLIC);
    assert.deepEqual(dialled, [PUBLIC]);
  });
}

test("a vetted address is dialled even if sockets try only one by default", async (t) => {
  t.after(() => net.setDefaultAutoSelectFamily(true));
  net.setDefaultAutoSelectFamily(false);
  const egress = openEgress(t, { lookup: answering(PRIVATE, PUBLIC) });
  assert.equal(await send(egress, `http://name.example:${port}/`), PUBLIC);
  const shut = openEgress(t, { lookup: answering(PRIVATE) });
  assert.equal(await send(shut, `http://name.example:${port}/`), "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("no more than eight addresses of one name are tried", async (t) => {
  const silent = [1, 2, 3, 4, 5, 6, 7, 8].map((last) => `127.0.9.${last}`);
  const allow = [readCidr("127.0.0.0/8")];
  const eighth = openEgress(t, { allow, lookup: answering(...silent.slice(1), PUBLIC) });
  assert.equal(await send(eighth, `http://name.example:${port}/`), PUBLIC);
  const ninth = openEgress(t, { allow, lookup: answering(...silent, PUBLIC) });
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
  const egress = openEgress(t, { lookup: create(2_000) });
  assert.equal(await send(egress, `http://rebind.example:${port}/close`), PUBLIC);
  assert.equal(server.asked("rebind.example", "A"), 1);
  assert.equal(await send(egress, `http://rebind.example:${port}/close`), "EGRESS_REFUSED");
  assert.equal(server.asked("rebind.example", "A"), 2);
  assert.deepEqual(dialled, [PUBLIC]);
});

test("a kept-alive connection keeps the address that was vetted for it", async (t) => {
  const { server, create } = await openNames(t, (_, __, asked) => [asked === 1 ? PUBLIC : PRIVATE]);
  const egress = openEgress(t, { lookup: create(2_000), connectionsPerOrigin: 1 });
  assert.equal(await send(egress, `http://rebind.example:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://rebind.example:${port}/`), PUBLIC);
  assert.equal(server.asked("rebind.example", "A"), 1);
  assert.deepEqual(dialled, [PUBLIC]);
});

test("names of the hosts file are vetted like others, and localhost is refused", async (t) => {
  const { create } = await openNames(t, () => "no such name");
  const egress = openEgress(t, { lookup: create(2_000) });
  assert.equal(await send(egress, `http://outside.example:${port}/`), PUBLIC);
  assert.equal(await send(egress, `http://inside.example:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://localhost:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://a.localhost.:${port}/`), "EGRESS_REFUSED");
  assert.equal(await send(egress, `http://missing.example:${port}/`), "NAME_LOOKUP_FAILED");
});

test("a name that hangs ends by its own timeout and delays no other", async (t) => {
  const { create } = await openNames(t, (name) => (name.startsWith("hang") ? "hang" : [PUBLIC]));
  const egress = openEgress(t, { lookup: create(1_000), connectionsPerOrigin: 1 });
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
  const egress = openEgress(t, { lookup: () => new Promise(() => {}), timeoutMs: 1_000 });
  const signal = AbortSignal.timeout(50);
  assert.equal(await send(egress, `http://name.example:${port}/`, { signal }), "TimeoutError");
});

test("more requests than connections all get their responses", async (t) => {
  const egress = openEgress(t, { lookup: answering(PUBLIC), connectionsPerOrigin: 2 });
  const url = `http://name.example:${port}/`;
  const responses = await Promise.all(Array.from({ length: 12 }, () => send(egress, url)));
  assert.deepEqual(responses, new Array(12).fill(PUBLIC));
  assert.equal(dialled.length, 2);
});

test("a redirect to a refused address is not followed", async (t) => {
  const egress = openEgress(t);
  const following = await send(egress, `http://${PUBLIC}:${port}/fade`, { redirect: "follow" });
  assert.equal(following, "EGRESS_REFUSED");
  assert.deepEqual(dialled, [PUBLIC]);
});

test("of this service, only its receivers are reached, by their own address", async (t) => {
  const receivers = `http://${PRIVATE}:${port}/console/receiver/`;
  const egress = openEgress(t, { allow: [], receivers, lookup: answering(PRIVATE) });
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
  const other = openEgress(t, { allow: [] });
  assert.equal(await send(other, receivers + id), "EGRESS_REFUSED", "none here");
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
  const egress = openEgress(t, { lookup: answering(PRIVATE, PUBLIC) });
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
    const egress = openEgress(t);
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

test("without undici's Agent nothing is sent and selfTest() fails", async (t) => {
  const key = Symbol.for("undici.globalDispatcher.2");
  const current: unknown = Reflect.get(globalThis, key);
  t.after(() => Reflect.set(globalThis, key, current));
  Reflect.set(globalThis, key, { dispatch() {} });
  const egress = openEgress(t);
  assert.equal(await send(egress, `http://${PUBLIC}:${port}/`), "EGRESS_UNSUPPORTED");
  assert.equal((await egress.selfTest()).ok, false);
  assert.deepEqual(dialled, []);
});
