import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { isGenuine } from "../../scripts/demo/subscriber.ts";

const DEMO = fileURLToPath(new URL("../../scripts/demo.ts", import.meta.url));
const LIMIT_MS = 40_000;

/** A server that responds with 200 to everything. */
const YES_SERVER = `
  import { createServer } from "node:http";
  const server = createServer((request, response) => response.end("{}"));
  server.listen(0, "127.0.0.1", () => {
    const url = "http://127.0.0.1:" + server.address().port;
    console.log(JSON.stringify({ msg: "listening", url }));
  });
  process.on("SIGTERM", () => process.exit(0));`;

interface Demo {
  readonly child: ChildProcess;
  output(): string;
  /** Waits until the output matches. */
  shows(pattern: RegExp): Promise<RegExpExecArray>;
  readonly exitCode: Promise<number | null>;
}

function startDemo(context: TestContext, args: readonly string[] = []): Demo {
  const child = spawn(process.execPath, [DEMO, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  tooLate.catch(() => {});
  const timer = setTimeout(() => reject(new Error(`the demo took too long:\n${text}`)), LIMIT_MS);
  context.after(() => {
    clearTimeout(timer);
    child.kill("SIGKILL");
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  }
  const exitCode = once(child, "close").then(() => child.exitCode);
  return {
    child,
    output: () => text,
    async shows(pattern) {
      for (;;) {
        const found = pattern.exec(text);
        if (found !== null) return found;
        const more = child.stdout ? once(child.stdout, "data") : undefined;
        await Promise.race([more, exitCode.then(() => assert.fail(text)), tooLate]);
      }
    },
    exitCode: Promise.race([exitCode, tooLate]),
  };
}

/** Checks that both processes that the demo started have ended. */
function assertEnded(output: string): void {
  const pids = [...output.matchAll(/\(process (\d+)\)/g)].map((match) => Number(match[1]));
  assert.equal(pids.length, 2, output);
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
}

test("the demo completes, leaves no process running and shows no secret", async (context) => {
  const demo = startDemo(context);
  assert.equal(await demo.exitCode, 0, demo.output());
  const text = demo.output();
  assert.match(text, /\nAll as documented\. \d+ steps, \d+ checks, [\d.]+ s\n$/);
  for (const grant of ["authorization code", "client credentials", "password", "refresh token"]) {
    assert.match(text, new RegExp(`Grant \\d of 4: ${grant}`));
  }
  assert.doesNotMatch(text, /✗/);
  assert.equal(text.match(/⇠ attempt \d/g)?.length, 9);
  assertEnded(text);
  // A pipe gets no colours; nobody gets a token, a code, a secret or a password.
  assert.doesNotMatch(text, /\u001b/);
  const unsigned = text.replaceAll(/v1,[\w+/]{43}=/g, ""); // a signature may look like anything
  assert.notEqual(unsigned, text);
  assert.doesNotMatch(unsigned, /eyJ[\w-]{20}|whsec_[\w+/]{20}|g0[\w-]{30}/);
  const members = text.matchAll(/"(?:password|client_secret)": ?"([^",\s]+)/g);
  const parameters = text.matchAll(/\b(?:password|csrf|code)=([^",\s]+)/g);
  const cookies = text.matchAll(/gatepost-[\w-]+=([^;\s]+)/g);
  for (const found of [members, parameters, cookies].map((matches) => [...matches])) {
    assert.notEqual(found.length, 0);
    for (const [, value] of found) assert.match(value ?? "", /…|•/);
  }
});

test("the demo shows what differs from the contract, and exits with 1", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-demo-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const server = join(folder, "server.mjs");
  await writeFile(server, YES_SERVER);
  const demo = startDemo(context, ["--server", server]);
  assert.equal(await demo.exitCode, 1);
  assert.match(demo.output(), /✗ it names its version\n +expected \[ 'name', /);
  assert.match(demo.output(), /but got {2}\[\]/);
  assert.match(demo.output(), /stopped: step 1/);
  assertEnded(demo.output());
});

test("an interrupted demo ends both processes that it started", async (context) => {
  const demo = startDemo(context);
  await demo.shows(/3 {2}Without a token/);
  demo.child.kill("SIGINT");
  assert.equal(await demo.exitCode, 130);
  assertEnded(demo.output());
});

test("--serve shows the URLs and the password, and runs until interrupted", async (context) => {
  const demo = startDemo(context, ["--serve"]);
  await demo.shows(/Ctrl\+C/);
  const [, app = ""] = await demo.shows(/app +(http:\S+)/);
  const [, gatepost = ""] = await demo.shows(/Gatepost +(http:\S+)/);
  const [, password] = await demo.shows(/Password +(\S+)/);
  assert.match(await (await fetch(app)).text(), /Harbour Orders/);
  const login = await fetch(`${gatepost}/consumer/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "ada", password }),
  });
  const { token } = await login.json();
  await fetch(`${gatepost}/orders/7`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ item: "tea", quantity: 1 }),
  });
  await demo.shows(/⇠ order\.created .*"id":"7".*signature genuine/);

  demo.child.kill("SIGINT");
  assert.equal(await demo.exitCode, 0);
  for (const url of [app, gatepost]) await assert.rejects(fetch(url));
});

// The example of the Standard Webhooks specification, and changes of it.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"test": 2432232314}';
const sentAtMs = 1_614_265_330_000;
const headers = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
const other = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const callbacks: readonly (readonly [string, boolean, Parameters<typeof isGenuine>])[] = [
  ["as it was sent", true, [headers, body, secret, sentAtMs]],
  [
    "with a second signature before it",
    true,
    [
      { ...headers, "webhook-signature": `${other} ${headers["webhook-signature"]}` },
      body,
      secret,
      sentAtMs,
    ],
  ],
  ["with another body", false, [headers, `${body} `, secret, sentAtMs]],
  ["with another secret", false, [headers, body, "whsec_AAAA", sentAtMs]],
  ["with another id", false, [{ ...headers, "webhook-id": "msg_1" }, body, secret, sentAtMs]],
  ["without a signature", false, [{ "webhook-id": "a" }, body, secret, sentAtMs]],
  ["after an hour", false, [headers, body, secret, sentAtMs + 3_600_000]],
];

for (const [what, expected, args] of callbacks) {
  test(`the demo's subscriber ${expected ? "accepts" : "refuses"} a callback ${what}`, () => {
    assert.equal(isGenuine(...args), expected);
  });
}
