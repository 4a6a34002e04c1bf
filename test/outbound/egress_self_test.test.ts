import assert from "node:assert/strict";
import { test } from "node:test";
import type { EgressOptions } from "../../src/outbound/egress.ts";
import { EgressError } from "../../src/outbound/reachable.ts";
import { readCidr } from "../helpers/cidr.ts";
import { openEgress } from "./egress_stage.ts";

type Request = NonNullable<EgressOptions["request"]>;

test("selfTest() passes with this Node's fetch, whatever is allowed", async (t) => {
  for (const allow of [[], [readCidr("127.0.0.0/8")]]) {
    assert.deepEqual(await openEgress(t, { allow }).selfTest(), { ok: true });
  }
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
    const outcome = await openEgress(t, { request }).selfTest();
    assert.ok(!outcome.ok);
    assert.match(outcome.reason, reason);
  });
}

test("selfTest() reports a shortage of descriptors in this process", async (t) => {
  // Without a descriptor to dial with, and without one for the listener to accept with.
  for (const code of ["EMFILE", "UND_ERR_SOCKET", "ECONNRESET"]) {
    const cause = Object.assign(new Error("no descriptor"), { code });
    const request = () => Promise.reject(new TypeError("fetch failed", { cause }));
    const outcome = await openEgress(t, { request }).selfTest();
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
    const outcome = await openEgress(t, { request }).selfTest();
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
