import assert from "node:assert/strict";
import { request as requestTls } from "node:https";
import { test, type TestContext } from "node:test";
import { createCertificate } from "./certificate.ts";
import { startReceiver } from "./receiver.ts";
import { spawnReceiver } from "./receiver_process.ts";
import { until } from "./until.ts";

async function receiverOf(t: TestContext) {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  return receiver;
}

const post = (url: string, body = "{}") =>
  fetch(url, { method: "POST", body, redirect: "manual", signal: AbortSignal.timeout(5_000) });

test("startReceiver() records a request byte for byte and returns 204 by default", async (t) => {
  const receiver = await receiverOf(t);
  const response = await post(`${receiver.url}/hook?a=1`, '{"ü":1}');
  assert.equal(response.status, 204);
  const [received] = await receiver.waitFor(1, 1_000, "/hook");
  assert.equal(received?.method, "POST");
  assert.equal(received?.url, "/hook?a=1");
  assert.deepEqual(received?.body, Buffer.from('{"ü":1}'));
  assert.equal(received?.headers["content-type"], "text/plain;charset=UTF-8");
});

test("react() plays its reactions one after the other and repeats the last one", async (t) => {
  const receiver = await receiverOf(t);
  receiver.react("/a",
    { kind: "answer", status: 503, headers: { "retry-after": "7" }, body: "busy" },
    { kind: "answer", status: 302, headers: { location: "http://127.0.0.1:1/" } },
    { kind: "answer", status: 200, delayMs: 20 },
  );
  const first = await post(`${receiver.url}/a`);
  assert.deepEqual([first.status, first.headers.get("retry-after")], [503, "7"]);
  assert.equal(await first.text(), "busy");
  const statuses = [];
  for (let n = 0; n < 3; n += 1) statuses.push((await post(`${receiver.url}/a`)).status);
  assert.deepEqual(statuses, [302, 200, 200]);
  assert.equal(receiver.count("/a"), 4);
  assert.equal((await post(`${receiver.url}/b`)).status, 204);
  assert.equal(receiver.count(), 5);
});

test("react() can end a connection without a response", async (t) => {
  const receiver = await receiverOf(t);
  for (const kind of ["close", "reset"] as const) {
    receiver.react("/x", { kind });
    await assert.rejects(post(`${receiver.url}/x`), TypeError);
  }
  receiver.react("/x", { kind: "raw", bytes: "nonsense\r\n\r\n" });
  await assert.rejects(post(`${receiver.url}/x`), TypeError);
  assert.equal(receiver.count("/x"), 3);
});

test("react() can withhold the response or its end until the client gives up", async (t) => {
  const receiver = await receiverOf(t);
  receiver.react("/hang", { kind: "hang" });
  const hanging = fetch(`${receiver.url}/hang`, { signal: AbortSignal.timeout(100) });
  await assert.rejects(hanging, { name: "TimeoutError" });

  receiver.react("/drip", { kind: "drip", everyMs: 5, bytes: 4 });
  assert.equal(await (await post(`${receiver.url}/drip`)).text(), "....");

  receiver.react("/endless", { kind: "endless" });
  const endless = await post(`${receiver.url}/endless`);
  const reader = endless.body?.getReader();
  let bytes = 0;
  while (bytes < 1_000_000) bytes += (await reader?.read())?.value?.length ?? Infinity;
  assert.ok(Number.isFinite(bytes));
  await reader?.cancel();
});

test("waitFor() says how many requests came if they are too few", async (t) => {
  const receiver = await receiverOf(t);
  await post(`${receiver.url}/a`);
  await assert.rejects(receiver.waitFor(2, 20, "/a"), /1 of 2 requests to \/a within 20 ms/);
});

test("peak() is the highest number of requests that waited at once", async (t) => {
  const receiver = await receiverOf(t);
  receiver.react("/slow", { kind: "answer", delayMs: 100 });
  await Promise.all([1, 2, 3].map(() => post(`${receiver.url}/slow`)));
  assert.equal(receiver.peak(), 3);
  receiver.clear();
  assert.deepEqual([receiver.count(), receiver.requests(), receiver.peak()], [0, [], 0]);
});

test("startReceiver() speaks TLS with a certificate that its authority signed", async (t) => {
  const tls = createCertificate();
  const receiver = await startReceiver({ tls });
  t.after(() => receiver.close());
  const ask = (path: string, ca?: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const options = { method: "POST", agent: false, ...(ca !== undefined && { ca }) };
      const request = requestTls(`${receiver.url}${path}`, options, (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      });
      request.once("error", reject).end();
    });
  assert.equal(await ask("/a", tls.ca), 204);
  await assert.rejects(ask("/a"), /certificate|verify/);
  await assert.rejects(ask("/a", createCertificate().ca), /certificate|verify|signature/);
  receiver.react("/r", { kind: "reset" });
  await assert.rejects(ask("/r", tls.ca), { code: "ECONNRESET" });
});

test("spawnReceiver() runs a receiver in a process of its own", async (t) => {
  const receiver = await spawnReceiver();
  t.after(() => receiver.close());
  assert.notEqual(receiver.pid, process.pid);
  await receiver.react("/a", { kind: "answer", status: 418 });
  assert.equal((await post(`${receiver.url}/a`, "tea")).status, 418);
  assert.equal(await receiver.waitFor(1, 1_000, "/a"), 1);
  assert.deepEqual(await receiver.requests("/a"), [
    { method: "POST", url: "/a", body: Buffer.from("tea") },
  ]);
  await assert.rejects(receiver.waitFor(2, 20), /1 of 2/);
  await receiver.clear();
  assert.equal(await receiver.count(), 0);
});

test("release() responds to requests that hang; later ones hang again", async (t) => {
  const receiver = await receiverOf(t);
  receiver.react("/hang", { kind: "hang" });
  for (const status of [500, 204]) {
    const response = post(`${receiver.url}/hang`);
    await until(() => receiver.hanging() === 1);
    receiver.release(status);
    assert.equal((await response).status, status);
  }
  assert.deepEqual([receiver.hanging(), receiver.peak()], [0, 1]);
});
