import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { createRandom, openRandom, type Random } from "../helpers/random.ts";
import { exchangeRaw, type RawResponse } from "../helpers/raw_http.ts";
import { readMetric } from "../helpers/metrics_text.ts";

/** How many requests are sent; GATEPOST_FUZZ_REQUESTS says another number. */
const REQUESTS = Number(process.env["GATEPOST_FUZZ_REQUESTS"] || 100_000);
const AT_ONCE = 64;
// Ends an incomplete request, so that the server need not wait for its end: no head and no chunk
// may hold a NUL. Only a body that is shorter than announced still waits.
const END = "\r\n\r\n\0\r\n\r\n";
const PATIENCE_MS = 1500;
const HEAP_MIB = 256;
const GROWTH_MIB = 160; // garbage that V8 has not collected; 100,000 leaks of 2 KiB would be more
const METRICS_TOKEN = "metrics-token-of-the-fuzz-test";
const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

let gatepost: Gatepost;
let port = 0;

before(async () => {
  gatepost = await startGatepost({
    env: {
      GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_MAX_BODY: "64KiB",
      // The most memory that it may need, whatever comes: with more it would exit.
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
    },
  });
  port = Number(new URL(gatepost.server.url).port);
  while ((await gatepost.api.get("/system/ready")).status !== 200) await sleep(20);
});
after(() => gatepost.stop());

const PATHS = [
  "/", "/consumer/login", "/consumer/subscription", "/consumer/subscription/s1", "/consumer/event",
  "/consumer/subscription/s1/delivery", "/authorization/token", "/authorization/revoke",
  "/authorization/introspect", "/authorization/whoami", "/authorization/authorize?client_id=a1",
  "/.well-known/jwks.json", "/.well-known/oauth-authorization-server", "/backend/app",
  "/backend/user", "/backend/event?limit=1", "/backend/grant", "/system/health", "/system/ready",
  "/system/about", "/system/metrics", "/openapi.json", "/orders/1", "/orders", "/ping", "/nowhere",
];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"];
const TYPES = [
  "application/json", "application/x-www-form-urlencoded", "text/plain",
  "application/json;charset=x", "application/a+json", "multipart/form-data", "", ";",
  "application/json, text/plain",
];
const BODIES = [
  "{}", "[]", "null", '{"username":1,"password":[]}', '{"a":', "[".repeat(500), '{"__proto__":{}}',
  '{"event":"\\ud800","endpoint":"http://127.0.0.1"}', '"\xff\xfe"', "1e999", "grant_type=password",
  "grant_type=%zz&grant_type=", "client_id=a1&client_secret=%00&token=" + "x".repeat(3000),
  "&=&==&", "grant_type=authorization_code&code=" + "g".repeat(68), "\0", "x".repeat(70_000),
];
const FIELDS = [
  "Cookie: session=x; session=y", "Origin: null", "X-Forwarded-For: 1.2.3.4, ::1, x", "Accept: */*",
  "X-Request-Id: a\tb", "Connection: keep-alive, upgrade", "Upgrade: h2c", "If-Match: *",
  "Content-Encoding: gzip", "Range: bytes=0-", "TE: trailers", "Trailer: Host", "Max-Forwards: 0",
];
const BROKEN_FIELDS = [
  "Authorization: Bearer a.b.c", "Authorization: Bearer eyJhbGciOiJub25lIn0.e30.",
  "Authorization: Basic", "Authorization: Basic Og==", "Authorization: Basic /",
  "Origin: http://[", "Connection: close",
  "Expect: 100-continue", "Expect: x", "Transfer-Encoding: chunked", "Content-Length: 3",
  "Keep-Alive: timeout=0", "Host: b", "Content-Type: x/y", " folded", "X : y", ": z",
];
const PATH_PIECES = [
  "%", "%00", "%2e%2e/", "%2f", "..", "/", "//", ";", "?", "&limit=x", "\\", "@", "[",
];
const PIECES = [
  "\r\n", "\n", "\r", "\0", ":", " ", "\t", "/", "//", "\\", "..", "%2e%2e/", "%2f", "%", "%00",
  "?", "#", "\x80", "\xff", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "GET ", "CONNECT ", "http://",
  "@", "[", ";", "Host: b\r\n", "Content-Length: 9\r\n", "Content-Length: -1\r\n",
  "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "\r\n\r\n", "0\r\n\r\n",
  "fffffff\r\n", "1;a\r\n", "x".repeat(2000),
];

/**
 * Requests for one connection: each has something wrong with its content (or, by chance, nothing),
 * and the last one more often than not with its framing or its bytes.
 */
function makeRequests(random: Random): string[] {
  const requests = Array.from({ length: 1 + random.below(8) }, () => makeRequest(random, true));
  if (random.chance(5)) requests.push(Buffer.from(random.bytes(300)).toString("latin1"));
  else if (random.chance(30)) requests.push(makeRequest(random, false));
  else requests.push(random.mutate(makeRequest(random, false), PIECES));
  return requests;
}

function makeRequest(random: Random, isFramed: boolean): string {
  const known = random.pick(PATHS);
  const path = random.chance(30) ? random.mutate(known, isFramed ? PATH_PIECES : PIECES) : known;
  const fields = [isFramed || random.chance(90) ? "Host: a" : "", ...makeFields(random, isFramed)];
  if (isFramed && random.chance(40) && !path.includes("revoke")) {
    fields.push(`Authorization: Bearer ${gatepost.adminToken}`);
  }
  const method = random.pick(METHODS);
  let body = "";
  if (random.chance(60)) {
    body = random.chance(30) ? random.mutate(random.pick(BODIES), PIECES) : random.pick(BODIES);
    fields.push(`Content-Type: ${random.pick(TYPES)}`);
    const framed = frameBody(random, body, isFramed);
    fields.push(framed.field);
    body = framed.body;
  }
  const lines = fields.filter((field) => field !== "").map((field) => `${field}\r\n`).join("");
  return `${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`;
}

function makeFields(random: Random, isFramed: boolean): string[] {
  const fields = Array.from({ length: random.below(4) }, () => random.pick(FIELDS));
  if (isFramed) return [...new Set(fields)];
  if (random.chance(5)) return [`X: ${"x".repeat(random.below(20_000))}`];
  if (random.chance(5)) return new Array<string>(random.below(400)).fill("a: b");
  return [...fields, random.pick(BROKEN_FIELDS)].map((field) =>
    random.chance(15) ? random.mutate(field, PIECES) : field
  );
}

function frameBody(
  random: Random,
  body: string,
  isFramed: boolean,
): { field: string; body: string } {
  if (random.chance(75)) return { field: `Content-Length: ${body.length}`, body };
  if (!isFramed && random.chance(50)) {
    return { field: `Content-Length: ${random.below(100_000)}`, body };
  }
  const size = 1 + random.below(body.length > 1000 ? 5000 : 40);
  const chunks = body.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
  const text = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
  const end = isFramed || random.chance(50) ? "0\r\n\r\n" : random.pick(PIECES);
  return { field: "Transfer-Encoding: chunked", body: text + end };
}

function checkResponse({ status, headers, body }: RawResponse, note: string): void {
  assert.equal(headers["x-content-type-options"], "nosniff", note);
  assert.match(headers["x-request-id"] ?? "", /^[A-Za-z0-9._:-]{1,128}$/, note);
  if (status < 400 || body === "") return; // HEAD has none
  const type = headers["content-type"] ?? "";
  if (/^application\/(problem\+)?json$/.test(type)) {
    const { status: shown, error } = parseProblem(body, note);
    assert.ok(shown === status || typeof error === "string", note);
  } else {
    assert.match(type, /^text\/html/, note); // the authorize page
  }
}

function parseProblem(body: string, note: string): Record<string, unknown> {
  try {
    return JSON.parse(body);
  } catch (error) {
    return assert.fail(`${String(error)} in ${JSON.stringify(body)}: ${note}`);
  }
}

const countFailed = () =>
  readMetric(gatepost, METRICS_TOKEN, "gatepost_http_requests_total", /status="5/);

function errorLines(): string[] {
  return gatepost.server.lines.filter((line) => /"level":"error"/.test(line));
}

async function sendAll(random: Random, count: number): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let sent = 0;

  async function run(own: Random): Promise<void> {
    while (sent < count) {
      const requests = makeRequests(own);
      sent += requests.length;
      const bytes = requests.join("") + END;
      const harmless = bytes.replaceAll(gatepost.adminToken, "…").replace(/x{9,}/g, "x…");
      const note = random.describe(harmless).slice(0, 3000);
      const options = { waitMs: PATIENCE_MS, finish: true };
      const { responses } = await exchangeRaw(port, bytes, options).catch(
        (error: unknown) => assert.fail(`${String(error)} ${note}`),
      );
      for (const response of responses) {
        if (response.status >= 500) assert.fail(`${note}\n${errorLines().join("\n")}`);
        checkResponse(response, note);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      }
    }
  }

  // Each line of requests has its own seed, so that their timing does not change what is sent.
  const starts = Array.from({ length: AT_ONCE }, () => random.below(2 ** 32));
  await Promise.all(starts.map((start) => run(createRandom(start, random.seed))));
  return statuses;
}

test("malformed requests cause no crash, no 5xx and no leak of memory", async (t: TestContext) => {
  const random = openRandom(t);
  await sendAll(random, Math.min(4000, REQUESTS / 5)); // compiles, and fills pools and caches
  const before = await readMetric(gatepost, METRICS_TOKEN, "process_resident_memory_bytes");
  const failedBefore = await countFailed();
  const statuses = await sendAll(random, REQUESTS);
  const after = await readMetric(gatepost, METRICS_TOKEN, "process_resident_memory_bytes");

  t.diagnostic(`${REQUESTS} requests: ${JSON.stringify(Object.fromEntries([...statuses].sort()))}`);
  const grownMiB = (after - before) / 2 ** 20;
  const residentMiB = Math.round(after / 2 ** 20);
  t.diagnostic(`resident memory ${residentMiB} MiB, grown ${grownMiB.toFixed(1)} MiB`);
  assert.ok(grownMiB < GROWTH_MIB, `${grownMiB} MiB`);
  assert.equal(await countFailed(), failedBefore);
  for (const status of [200, 204, 400, 401, 404, 405, 413, 415, 431]) {
    assert.ok(statuses.has(status), `no ${status}: the requests do not reach what they should`);
  }
  assert.equal((await gatepost.api.get("/system/health")).status, 200);
  assert.deepEqual(errorLines(), []);
});
