import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { HttpLimits } from "../../src/http/limits.ts";
import { until } from "../helpers/until.ts";
import { assertProblem, echo, MAX_BODY, post, startHttpStage } from "./http_stage.ts";

test("100 Continue is sent when the handler reads the body", async (t) => {
  const { open } = await startHttpStage(t);
  const socket = await open();
  socket.write(post("Expect: 100-continue\r\nContent-Length: 2\r\n"));
  const [first] = await once(socket, "data");
  assert.match(String(first), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  socket.write("ab");
  const [second] = await once(socket, "data");
  assert.match(String(second), /"bytes":2/);
});

test("100 Continue is not sent for a body that is refused", async (t) => {
  const { exchange } = await startHttpStage(t);
  const head = post(`Expect: 100-continue\r\nContent-Length: ${MAX_BODY + 1}\r\n`);
  const { responses, text } = await exchange(head, { waitMs: 3000 });
  assert.doesNotMatch(text, /100 Continue/);
  assertProblem(responses[0], 413);
});

test("100 Continue is not sent to an HTTP/1.0 client (RFC 9110 §10.1.1)", async (t) => {
  const { exchange } = await startHttpStage(t);
  const bytes = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab";
  const { text } = await exchange(bytes);
  assert.doesNotMatch(text, /100 Continue/);
  assert.match(text, /"bytes":2/);
});

test("a slow body is cut off with 408 as the response to its request", async (t) => {
  const { exchangeToEnd, requests } = await startHttpStage(t, {
    limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 },
  });
  const bytes = post("X-Request-Id: mine\r\nContent-Length: 10\r\n", "abc");
  const { responses } = await exchangeToEnd(bytes);
  assertProblem(responses[0], 408);
  assert.equal(responses[0]?.headers["x-request-id"], "mine");
  assert.equal(requests.length, 1);
});

test("a body whose client has left before it is read is refused at once", async (t) => {
  const outcome = Promise.withResolvers<unknown>();
  const { open } = await startHttpStage(t, {
    async handle(request) {
      while (!request.isGone) await delay(10);
      await delay(10);
      const waited = delay(500, "still waiting");
      outcome.resolve(await Promise.race([request.readBody(MAX_BODY), waited]).catch(String));
      return { status: 204 };
    },
  });
  const socket = await open();
  socket.write(post("Content-Length: 10\r\n", "abc"));
  await delay(50);
  socket.resetAndDestroy();
  assert.match(String(await outcome.promise), /ended too early/);
});

test("past the budget of bodies, those that have been coming longest are refused", async (t) => {
  const { exchange } = await startHttpStage(t, { limits: { maxHeldBodyBytes: 2 * MAX_BODY } });
  const begun = post(`Content-Length: ${MAX_BODY}\r\n`, "x".repeat(MAX_BODY - 1));
  const hoarders = [];
  for (let count = 0; count < 3; count++) {
    hoarders.push(exchange(begun, { waitMs: 1500 }));
    await delay(50);
  }
  const honest = await exchange(`${begun}x`, { waitMs: 1500 });
  assert.equal(honest.responses[0]?.status, 200);
  const responses = (await Promise.all(hoarders)).map((hoarder) => hoarder.responses[0]);
  assert.deepEqual(responses.map((response) => response?.status), [503, 503, undefined]);
  assertProblem(responses[0], 503);
  assert.equal(responses[0]?.headers["retry-after"], "1");
});

test("bodies whose responses have been sent do not count any more", async (t) => {
  const { exchange } = await startHttpStage(t, { limits: { maxHeldBodyBytes: 2 * MAX_BODY } });
  const whole = post(`Content-Length: ${MAX_BODY}\r\n`, "x".repeat(MAX_BODY));
  for (let count = 0; count < 5; count++) {
    assert.equal((await exchange(whole, { finish: true })).responses[0]?.status, 200);
  }
});

/** Sends requests one after the other. The responses of those that are read come at the end. */
async function exchangeTogether(t: TestContext, limits: Partial<HttpLimits>, sent: string[]) {
  const allSent = Promise.withResolvers<void>();
  const { exchange, requests } = await startHttpStage(t, {
    limits,
    async handle(request) {
      const response = await echo(request);
      await allSent.promise;
      return response;
    },
  });
  const exchanges = [];
  for (const bytes of sent) {
    exchanges.push(exchange(bytes, { finish: true }));
    await until(() => requests.length === exchanges.length);
    await delay(20); // for its body
  }
  allSent.resolve();
  const responses = (await Promise.all(exchanges)).map((each) => each.responses[0]);
  return { exchange, responses, statuses: responses.map((response) => response?.status) };
}

const typed = (type: string, body: string) =>
  post(`Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`, body);
const OBJECTS = `[${"{},".repeat(800)}`; // 99 bytes for each
const HELD: readonly [what: string, limit: keyof HttpLimits, request: string][] = [
  ["bodies that came in one piece", "maxHeldBodyBytes", typed("text/plain", "x".repeat(50_000))],
  ["values parsed from JSON", "maxParsedBytes", typed("application/json", OBJECTS)],
  [
    "values parsed from a form",
    "maxParsedBytes",
    typed("application/x-www-form-urlencoded", "a&".repeat(1200)),
  ],
  [
    "values parsed from a form of files",
    "maxParsedBytes",
    typed("multipart/form-data; boundary=b", "\r\n--b".repeat(60)),
  ],
];

for (const [what, limit, request] of HELD) {
  test(`${what} are refused past the budget while others are in use`, async (t) => {
    const limits = { [limit]: 2 * MAX_BODY };
    const sent = Array(4).fill(request);
    const { exchange, responses, statuses } = await exchangeTogether(t, limits, sent);
    assert.deepEqual(statuses, [200, 200, 503, 503]);
    assertProblem(responses[3], 503);
    assert.equal((await exchange(request, { finish: true })).responses[0]?.status, 200);
  });
}

test("a parsed value may exceed the budget if that is not used up yet", async (t) => {
  const sent = ["1", "[1]", "2"].map((body) => typed("application/json", body));
  const { statuses } = await exchangeTogether(t, { maxParsedBytes: 10 }, sent);
  assert.deepEqual(statuses, [200, 200, 503]);
});
