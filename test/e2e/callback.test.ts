import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createCertificate } from "../helpers/certificate.ts";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { startGatepost } from "../helpers/gatepost.ts";
import { listenOnLoopback } from "../helpers/listen.ts";
import { OFFLINE } from "../helpers/offline.ts";
import { type Reaction, type Receiver, startReceiver } from "../helpers/receiver.ts";
import { newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));
const TIMEOUT_MS = 600;

let stage: EventStage;
let secure: Receiver;
let token: string;
/** A URL where no server listens any more. */
let closedUrl: string;
/** A receiver whose certificate the server is configured to trust. */
let trusted: Receiver;
const folder = mkdtempSync(join(tmpdir(), "gatepost-callback-"));
before(async () => {
  const certificate = createCertificate();
  const authority = join(folder, "authority.pem");
  writeFileSync(authority, certificate.ca);
  const closed = await startReceiver();
  await closed.close();
  closedUrl = `${closed.url}/`;
  stage = await startEventStage({
    GATEPOST_ENDPOINTS: ENDPOINTS,
    GATEPOST_CALLBACK_TIMEOUT: `${TIMEOUT_MS}ms`,
    NODE_EXTRA_CA_CERTS: authority,
  });
  secure = await startReceiver({ tls: createCertificate() });
  trusted = await startReceiver({ tls: certificate });
  token = await stage.newConsumer();
});
after(async () => {
  await stage.stop();
  await Promise.all([secure.close(), trusted.close()]);
  rmSync(folder, { recursive: true });
});

/** Subscribes any URL to a new event. */
async function subscribe(endpoint: string): Promise<StagedSubscription> {
  const event = newName("e");
  const response = await stage.call("POST", "/consumer/subscription", token, { event, endpoint });
  assert.equal(response.status, 201, response.text);
  return { id: String(readObject(response)["id"]), path: new URL(endpoint).pathname, event, token };
}

/** Dispatches an event by the code of a hosted endpoint. */
async function dispatch(name: string, data: unknown): Promise<void> {
  const response = await stage.gatepost.api.postJson("/dispatch", { events: [{ name, data }] });
  assert.equal(response.status, 202, response.text);
}

/** The status of the subscription's only delivery once it has ended, and its attempts. */
async function finished(subscription: StagedSubscription) {
  const path = `/consumer/subscription/${subscription.id}/delivery`;
  let delivery: Readonly<Record<string, unknown>> = {};
  await until(async () => {
    const { items } = readObject(await stage.call("GET", path, token));
    assert.ok(Array.isArray(items));
    delivery = Object(items[0]);
    return delivery["status"] !== undefined && delivery["status"] !== "pending";
  });
  const id = String(delivery["id"]);
  const full = readObject(await stage.call("GET", `${path}/${id}`, token));
  assert.ok(Array.isArray(full["attempts"]));
  const attempts: readonly Readonly<Record<string, unknown>>[] = full["attempts"];
  return { status: full["status"], attempts };
}

describe("a callback", () => {
  const DATA: readonly unknown[] = [
    { order: 1, "ä€": ["😀", null, 1.5, true], nested: { deep: [[]] } },
    [], "text", "", 0, false, null,
  ];
  for (const data of DATA) {
    test(`carries ${JSON.stringify(data)} and nothing else`, async () => {
      const path = `/${newName("hook")}`;
      const { event } = await subscribe(`${stage.receiver.url}${path}?a=1&b=%20`);
      await dispatch(event, data);
      const [request] = await stage.receiver.waitFor(1, PATIENCE_MS, path);
      assert.ok(request);
      assert.deepEqual([request.method, request.url], ["POST", `${path}?a=1&b=%20`]);
      assert.deepEqual(request.body, Buffer.from(JSON.stringify(data)));
      assert.equal(request.headers["content-type"], "application/json");
    });
  }

  test("has headers for its sender, event, attempt and signature, and no other data", async () => {
    const path = `/${newName("hook")}`;
    const event = newName("e");
    const made = await stage.call("POST", "/consumer/subscription", token, {
      event,
      endpoint: stage.receiver.url + path,
    });
    const { secret } = readObject(made);
    await dispatch(event, { a: 1 });
    const [request] = await stage.receiver.waitFor(1, PATIENCE_MS, path);
    assert.ok(request);
    const about = readObject(await stage.gatepost.api.get("/system/about"));
    const product = `Gatepost/${String(about["version"])}@${String(about["revision"])}`;
    assert.match(product, /^Gatepost\/[^/@\s]+@[^/@\s]+$/);
    const { headers } = request;
    assert.equal(headers["user-agent"], product);
    assert.equal(headers["gatepost-event"], event);
    assert.equal(headers["gatepost-attempt"], "1");
    assert.equal(findSignatureFault(request, String(secret), Date.now()), undefined);
    const known = [
      "host", "connection", "content-length", "content-type", "user-agent", "accept",
      "accept-language", "accept-encoding", "sec-fetch-mode", "webhook-id", "webhook-timestamp",
      "webhook-signature", "gatepost-event", "gatepost-attempt",
    ];
    assert.deepEqual(Object.keys(headers).filter((name) => !known.includes(name)), []);
  });

  test("is the same on a resend except for time, signature and attempt number", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 500, 204);
    await dispatch(subscription.event, { text: "ä", n: [1, 2] });
    const [first, second] = await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
    assert.ok(first && second);
    assert.deepEqual(first.body, second.body);
    const same = ({ headers }: typeof first) => {
      const { "webhook-timestamp": _time, "webhook-signature": _signature, ...rest } = headers;
      return rest;
    };
    assert.deepEqual(same(second), { ...same(first), "gatepost-attempt": "2" });
  });

  test("goes to each subscription of an event with an id of its own", async () => {
    const event = newName("e");
    const subscriptions = [
      await stage.subscribe(token, event),
      await stage.subscribe(token, event),
    ];
    await dispatch(event, 1);
    await dispatch(event, 2);
    const requests = await Promise.all(
      subscriptions.map(({ path }) => stage.receiver.waitFor(2, PATIENCE_MS, path)),
    );
    assert.equal(new Set(requests.flat().map(({ headers }) => headers["webhook-id"])).size, 4);
  });

  test("sends no cookie that a response has set", async () => {
    const path = `/${newName("hook")}`;
    stage.receiver.answer(path, 204, { "set-cookie": "id=1; Path=/" });
    const { event } = await subscribe(stage.receiver.url + path);
    for (const n of [1, 2]) {
      await dispatch(event, n);
      const requests = await stage.receiver.waitFor(n, PATIENCE_MS, path);
      assert.equal(requests.at(-1)?.headers.cookie, undefined);
    }
  });
});

describe("a success", () => {
  for (const status of [200, 201, 202, 204, 299]) {
    test(`is status ${status}, and is sent once`, async () => {
      const subscription = await stage.subscribe(token, newName("e"), status);
      await dispatch(subscription.event, 1);
      const { status: state, attempts } = await finished(subscription);
      assert.equal(state, "delivered");
      assert.deepEqual(attempts.map((attempt) => attempt["status"]), [status]);
      assert.equal(stage.receiver.count(subscription.path), 1);
    });
  }

  test("is possible over https", async () => {
    const subscription = await subscribe(`${trusted.url}/hook`);
    await dispatch(subscription.event, { a: 1 });
    assert.equal((await finished(subscription)).status, "delivered");
    const [request] = trusted.requests("/hook");
    assert.equal(String(request?.body), '{"a":1}');
  });

  test("needs only the beginning of the response", async () => {
    const { url, written, close } = await startEndless();
    const subscription = await subscribe(url);
    await dispatch(subscription.event, 1);
    assert.equal((await finished(subscription)).status, "delivered");
    assert.ok(await written < 16 * 1024 * 1024, "no more is read than the sockets buffer");
    await close();
  });
});

describe("a failure", () => {
  const REACTIONS: readonly (readonly [what: string, reaction: Reaction, shown: unknown])[] = [
    ["301", { kind: "answer", status: 301, headers: { location: "/elsewhere" } }, 301],
    ["302", { kind: "answer", status: 302, headers: { location: "/elsewhere" } }, 302],
    ["304", { kind: "answer", status: 304 }, 304],
    ["307", { kind: "answer", status: 307, headers: { location: "/elsewhere" } }, 307],
    ["308", { kind: "answer", status: 308, headers: { location: "/elsewhere" } }, 308],
    ["400", { kind: "answer", status: 400 }, 400],
    ["401", { kind: "answer", status: 401 }, 401],
    ["404", { kind: "answer", status: 404 }, 404],
    ["410", { kind: "answer", status: 410 }, 410],
    ["500", { kind: "answer", status: 500 }, 500],
    ["503", { kind: "answer", status: 503 }, 503],
    ["429 with Retry-After", { kind: "answer", status: 429, headers: { "retry-after": "0" } }, 429],
    ["no response", { kind: "hang" }, "timeout"],
    ["a late response", { kind: "answer", delayMs: 3 * TIMEOUT_MS }, "timeout"],
    ["a body that comes slowly", { kind: "drip", everyMs: 50 }, "timeout"],
    ["a closed connection", { kind: "close" }, "reset"],
    ["a reset connection", { kind: "reset" }, "reset"],
    ["not HTTP", { kind: "raw", bytes: "220 smtp.example\r\n" }, "protocol"],
    ["HTTP/2 in place of HTTP/1.1", {
      kind: "raw",
      bytes: "\0\0\u0012\u0004\0\0\0\0\0",
    }, "protocol"],
  ];
  for (const [what, reaction, shown] of REACTIONS) {
    test(`is ${what}, which is resent like any other`, async () => {
      const path = `/${newName("hook")}`;
      stage.receiver.react(path, reaction);
      const subscription = await subscribe(stage.receiver.url + path);
      await dispatch(subscription.event, 1);
      const { status, attempts } = await finished(subscription);
      assert.equal(status, "failed");
      const seen = attempts.map((attempt) => attempt["status"] ?? attempt["error"]);
      assert.deepEqual(seen, [shown, shown]);
      // An attempt over a kept-alive connection that is reset may be sent twice.
      const sent = stage.receiver.requests(path).map(({ headers }) => headers["gatepost-attempt"]);
      assert.deepEqual(shown === "reset" ? [...new Set(sent)] : sent, ["1", "2"]);
      assert.equal(stage.receiver.count("/elsewhere"), 0);
    });
  }

  const ADDRESSES: readonly (readonly [what: string, endpoint: () => string, shown: string])[] = [
    ["a port where no server listens", () => closedUrl, "refused"],
    ["a certificate of an unknown authority", () => `${secure.url}/`, "tls"],
    ["a host name that does not exist", () => "http://no-such-name.invalid/", "unreachable"],
    ["http sent to an https server", () => secure.url.replace("https", "http"), "reset"],
    ["https sent to an http server", () => stage.receiver.url.replace("http", "https"), "tls"],
  ];
  for (const [what, endpoint, shown] of ADDRESSES) {
    const skip = shown === "unreachable" && OFFLINE;
    test(`is ${what}, which is resent like any other`, { skip }, async () => {
      const subscription = await subscribe(endpoint());
      await dispatch(subscription.event, 1);
      const { status, attempts } = await finished(subscription);
      assert.equal(status, "failed");
      const errors = attempts.map((attempt) => attempt["error"] ?? attempt["status"]);
      if (what !== "http sent to an https server") assert.deepEqual(errors, [shown, shown]);
      else assert.equal(errors.length, 2); // OpenSSL may send an HTTP 400 of its own
      assert.equal(secure.count(), 0);
    });
  }

  test("is a timeout if the whole exchange takes too long", async () => {
    const path = `/${newName("hook")}`;
    stage.receiver.react(path, { kind: "drip", everyMs: 50 });
    const subscription = await subscribe(stage.receiver.url + path);
    await dispatch(subscription.event, 1);
    const { attempts } = await finished(subscription);
    for (const attempt of attempts) {
      const ms = Number(attempt["duration_ms"]);
      assert.ok(ms >= TIMEOUT_MS - 20 && ms < 2 * TIMEOUT_MS, `${ms} ms`);
    }
  });
});

describe("the address guard", () => {
  test("by default refuses loopback, both at subscribing and at sending", async (t) => {
    const modules = { GATEPOST_ENDPOINTS: ENDPOINTS, GATEPOST_RESEND_DELAYS: "20ms" };
    const gatepost = await startGatepost({ env: modules });
    t.after(() => gatepost.stop());
    const user = await gatepost.createUser();
    const headers = { authorization: `Bearer ${await gatepost.login(user)}` };
    const event = newName("e");
    const path = `/${newName("hook")}`;
    const literal = { event, endpoint: stage.receiver.url + path };
    const refused = await gatepost.api.postJson("/consumer/subscription", literal, headers);
    assert.equal(refused.status, 400);
    const { port } = new URL(stage.receiver.url);
    const named = { event, endpoint: `http://localhost:${port}${path}` };
    const made = await gatepost.api.postJson("/consumer/subscription", named, headers);
    assert.equal(made.status, 201, "a host name is resolved only when the callback is sent");
    await gatepost.api.postJson("/dispatch", { events: [{ name: event, data: 1 }] });
    const list = `/consumer/subscription/${String(readObject(made)["id"])}/delivery`;
    let delivery: Readonly<Record<string, unknown>> = {};
    await until(async () => {
      const { items } = readObject(await gatepost.api.get(list, headers));
      delivery = Object(Array.isArray(items) ? items[0] : undefined);
      return delivery["status"] === "failed";
    });
    const full = readObject(await gatepost.api.get(`${list}/${String(delivery["id"])}`, headers));
    assert.ok(Array.isArray(full["attempts"]));
    const errors = full["attempts"].map((attempt: unknown) => Object(attempt).error);
    assert.deepEqual(errors, ["unreachable", "unreachable"]);
    assert.equal(stage.receiver.count(path), 0);
  });

  test("stops delivery, logs that and is not ready if fetch uses a proxy", async (t) => {
    const proxy = await startReceiver();
    t.after(() => proxy.close());
    const passed = await startEventStage({
      GATEPOST_ENDPOINTS: ENDPOINTS,
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: proxy.url,
    });
    t.after(() => passed.stop());
    const { gatepost, receiver } = passed;
    const { event } = await passed.subscribe(await passed.newConsumer(), newName("e"));
    await until(() => gatepost.server.lines.some((line) => line.includes("failed its test")));
    await gatepost.api.postJson("/dispatch", { events: [{ name: event, data: 1 }] });
    await sleep(500);
    assert.deepEqual([receiver.count(), proxy.count()], [0, 0]);
    assert.equal((await gatepost.api.get("/system/ready")).status, 503);
  });
});

/** A server whose response never ends; `written` is its length when the connection closed. */
async function startEndless() {
  const sockets = new Set<Socket>();
  const first = Promise.withResolvers<number>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => first.resolve(socket.bytesWritten));
    const pour = () => {
      while (socket.writable && socket.write(Buffer.alloc(65_536, "x")));
    };
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.on("drain", pour);
      pour();
    });
  });
  return {
    url: `http://${await listenOnLoopback(server)}/`,
    written: first.promise,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
