import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { sendRaw } from "../helpers/raw_http.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, expectStatus, readItems, readObject } from "../helpers/responses.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { until } from "../helpers/until.ts";

let stage: EventStage;
let consumer: string;
before(async () => {
  // It listens on every address, and no callback to the loopback is allowed.
  stage = await startEventStage({
    GATEPOST_HOST: "0.0.0.0",
    GATEPOST_BASE_URL: "http://gatepost.test/base",
    GATEPOST_CALLBACK_ALLOW: "none",
    GATEPOST_CALLBACK_TIMEOUT: "300ms",
  });
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

type Fields = Readonly<Record<string, unknown>>;
const PATH = "/backend/receiver";
const made: string[] = [];
const port = () => new URL(stage.gatepost.url).port;

async function makeReceiver(): Promise<{ readonly id: string; readonly url: string }> {
  const response = await expectStatus(201, stage.call("POST", PATH, stage.admin));
  const { id, url, answer, expires_at } = readObject(response);
  made.push(String(id));
  assert.equal(response.headers.get("location"), `/base${PATH}/${id}`);
  assert.equal(answer, "200");
  const leftMs = Date.parse(String(expires_at)) - Date.now();
  assert.ok(leftMs > 3_590_000 && leftMs <= 3_600_000, String(leftMs));
  return { id: String(id), url: String(url) };
}

async function readCallbacks(id: string, token = stage.admin): Promise<readonly Fields[]> {
  const { callbacks } = readObject(await expectStatus(200,
    stage.call("GET", `${PATH}/${id}`, token)));
  assert.ok(Array.isArray(callbacks));
  return callbacks;
}

const setAnswer = (id: string, answer: string) =>
  stage.call("PUT", `${PATH}/${id}`, stage.admin, { answer });
const trySubscribe = (endpoint: string, event = newName("e")) =>
  stage.call("POST", "/consumer/subscription", consumer, { event, endpoint });

/** Subscribes an address and dispatches one event. */
async function send(endpoint: string, data: unknown = { n: 1 }) {
  const event = newName("e");
  const { id, secret } = readObject(await expectStatus(201, trySubscribe(endpoint, event)));
  await stage.dispatch(event, data);
  return { id: String(id), secret: String(secret), event, path: "", token: consumer };
}

test("a receiver shows its callbacks with all that is needed to verify them", async () => {
  const { id, url } = await makeReceiver();
  assert.equal(url, `http://127.0.0.1:${port()}/base/console/receiver/${id}`);
  const { secret, event } = await send(url, { ordered: "Käse" });
  await until(async () => (await readCallbacks(id)).length === 1);
  const reader = await stage.newConsumer(["backend:read"]);
  const [callback = {}] = await readCallbacks(id, reader);
  assert.deepEqual([callback["body"], callback["answer"]], ['{"ordered":"Käse"}', "200"]);
  const headers = Object(callback["headers"]);
  assert.deepEqual(Object.keys(headers).sort(), [
    "content-type", "gatepost-attempt", "gatepost-event", "user-agent", "webhook-id",
    "webhook-signature", "webhook-timestamp",
  ]);
  assert.equal(headers["gatepost-event"], event);
  const body = Buffer.from(String(callback["body"]));
  assert.equal(findSignatureFault({ headers, body }, secret, Date.now()), undefined);
  const changed = Buffer.from('{"ordered":"Kase"}');
  assert.notEqual(findSignatureFault({ headers, body: changed }, secret, Date.now()), undefined);
});

test("a receiver responds as it is set: with 503, not at all, or with 410", async () => {
  const { id, url } = await makeReceiver();
  assert.equal(readObject(await expectStatus(200, setAnswer(id, "503")))["answer"], "503");
  const attempts = async () => (await readCallbacks(id))
    .map(({ answer, headers }) => [answer, Object(headers)["gatepost-attempt"]]);
  const subscription = await send(url);
  await stage.deliveries(subscription, "failed");
  assert.deepEqual(await attempts(), [["503", "2"], ["503", "1"]], "the newest first");
  await setAnswer(id, "none");
  await stage.dispatch(subscription.event, {});
  const [late] = await stage.deliveries(subscription, "failed", "failed");
  assert.equal(late?.["last_error"], "timeout");
  assert.deepEqual((await attempts())[0], ["none", "2"]);
  await setAnswer(id, "410");
  await stage.dispatch(subscription.event, {});
  const path = `/consumer/subscription/${subscription.id}`;
  await until(async () =>
    readObject(await stage.call("GET", path, consumer))["status"] === "disabled");
  assert.deepEqual(assertProblem(await setAnswer(id, "200 "), 400), ["/answer"]);
});

test("a subscription to another address of the service, or a similar one, is refused", async () => {
  const { id, url } = await makeReceiver();
  const at = `http://127.0.0.1:${port()}`;
  const below = `${at}/base/console/receiver`;
  const other = new URL(stage.receiver.url).port;
  const attacks = [
    `${at}/`, `${at}/base/backend/event`, `${at}/base/system/health`,
    `${at}/console/receiver/${id}`, `http://gatepost.test/base/console/receiver/${id}`,
    `${below}/`, `${below}/${id}/`, `${below}/${id}x`, `${url}?a=1`, `${below}/../backend/event`,
    `${below}/%2e%2e/receiver`, `${below}/..%2f..%2fbackend%2fevent`, `${below}//${id}`,
    url.replace("http:", "https:"), url.replace(port(), other), url.replace("127.0.0.1", "0.0.0.0"),
    url.replace("127.0.0.1", "127.0.0.2"), url.replace("127.0.0.1", "[::1]"),
    url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
  ];
  for (const endpoint of attacks) {
    assert.deepEqual(assertProblem(await trySubscribe(endpoint), 400), ["/endpoint"], endpoint);
  }
  // Another form of the receiver's own address.
  assert.equal((await trySubscribe(url.replace("127.0.0.1", "127.1"))).status, 201);
});

test("a host name that resolves to a receiver gets no callback", async () => {
  const { id, url } = await makeReceiver();
  const subscription = await send(url.replace("127.0.0.1", "localhost"));
  const [delivery] = await stage.deliveries(subscription, "failed");
  assert.equal(delivery?.["last_error"], "unreachable");
  assert.deepEqual(await readCallbacks(id), []);
});

test("a caller without the scope may not read or change receivers", async () => {
  const { id } = await makeReceiver();
  const reader = await stage.newConsumer(["backend:read"]);
  const calls = [["POST", PATH], ["GET", `${PATH}/${id}`], ["PUT", `${PATH}/${id}`],
    ["DELETE", `${PATH}/${id}`]] as const;
  for (const [method, path] of calls) {
    const body = method === "PUT" ? { answer: "503" } : undefined;
    assertProblem(await stage.call(method, path, consumer, body), 403);
    if (method !== "GET") assertProblem(await stage.call(method, path, reader, body), 403);
  }
});

test("a receiver accepts 64 KiB until it is deleted, and the audit has its changes", async () => {
  const { id } = await makeReceiver();
  const path = `/console/receiver/${id}`;
  const post = (body: string) => stage.gatepost.api.send("POST", path, { body });
  assert.equal((await post("x".repeat(65_536))).status, 200);
  assertProblem(await post("x".repeat(65_537)), 413);
  assertProblem(await stage.gatepost.api.get(path), 405);
  assertProblem(await stage.gatepost.api.send("POST", "/console/receiver/constructor"), 404);
  const dots = await sendRaw(stage.gatepost.url, "POST", `/base/console/receiver/../${id}`);
  assert.equal(dots.status, 400);
  assert.equal((await readCallbacks(id)).length, 1);
  await expectStatus(200, setAnswer(id, "503"));
  await expectStatus(204, stage.call("DELETE", `${PATH}/${id}`, stage.admin));
  assertProblem(await post("1"), 404);
  for (const method of ["GET", "PUT", "DELETE"]) {
    const body = method === "PUT" ? { answer: "200" } : undefined;
    assertProblem(await stage.call(method, `${PATH}/${id}`, stage.admin, body), 404);
  }
  const audit = await stage.call("GET", `/backend/audit?target=${id}`, stage.admin);
  assert.deepEqual(readItems(audit).map(({ action }) => action),
    ["receiver.delete", "receiver.change", "receiver.create"]);
  const document = await stage.gatepost.api.get("/openapi.json", bearer(stage.admin));
  assert.ok(!document.text.includes('"/console'));
});

test("there are at most 20 receivers", async () => {
  for (const id of made.splice(0)) await stage.call("DELETE", `${PATH}/${id}`, stage.admin);
  for (let count = 0; count < 20; count++) await makeReceiver();
  assertProblem(await stage.call("POST", PATH, stage.admin), 409);
  await stage.call("DELETE", `${PATH}/${made[0]}`, stage.admin);
  await expectStatus(201, stage.call("POST", PATH, stage.admin));
});
