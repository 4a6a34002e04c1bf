import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Gatepost, PASSWORD, SOURCE_ENTRY, startGatepost } from "../helpers/gatepost.ts";
import { DEVICE_GRANT, newDevice } from "../helpers/device.ts";
import { isOnRqlite } from "../helpers/engine.ts";
import { createDataFolder, startServer } from "../helpers/process.ts";
import { exchangeRaw } from "../helpers/raw_http.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { basicAuth, bearer, newName, newPkce } from "../helpers/requests.ts";
import { readObject, readTokens } from "../helpers/responses.ts";

const METRICS_TOKEN = "metrics-token-of-the-log-test";
const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));

/** Data that is no secret: it is stored, and shown to administrators. */
const DATA = ["endpoint's query", "event's data", "path", "body"];
/** What administrators and monitoring programs read. */
const LISTS = [
  ..."app audit config cronjob delivery event grant key problem subscription user".split(" ")
    .map((noun) => `/backend/${noun}?limit=200`),
  ...["/system/metrics", "/system/ready", "/openapi.json", "/asyncapi.json"],
];

let gatepost: Gatepost;
let receiver: Receiver;
let folder: string;
/** The texts that must be in no line, by what they are. */
const secrets = new Map<string, string>([["metrics token", METRICS_TOKEN], ["password", PASSWORD]]);

before(async () => {
  receiver = await startReceiver();
  folder = await createDataFolder();
  gatepost = await startGatepost({
    folder,
    env: {
      GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
      GATEPOST_RESEND_DELAYS: "0s",
      GATEPOST_LOG_LEVEL: "debug",
      GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    },
  });
  secrets.set("admin's token", gatepost.adminToken);
});
after(async () => {
  await receiver.close();
  await rm(folder, { recursive: true, force: true });
});

function keep(what: string, secret: unknown): string {
  const text = String(secret);
  assert.ok(text.length >= 8, `${what} is too short to look for: ${text}`);
  secrets.set(what, text);
  return text;
}

/**
 * The texts that betray a secret: every 12 characters of its end (its start may be known, as the
 * claims of a token or an id are), and the same in other encodings.
 */
function tracesOf(secret: string): string[] {
  const end = secret.slice(-24);
  const windows = (text: string, length: number) =>
    Array.from({ length: text.length - length + 1 }, (_, at) => text.slice(at, at + length));
  const base64 = [0, 1, 2].flatMap((before) => {
    const text = Buffer.from(`${"x".repeat(before)}${end}`).toString("base64").slice(4, -4);
    return [text, text.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const isRandom = /^[\w-]{24}$/.test(end); // then its bytes may be stored
  return [
    ...[end, encodeURIComponent(end), JSON.stringify(end).slice(1, -1)]
      .flatMap((text) => windows(text, Math.min(12, text.length))),
    ...base64.filter(({ length }) => length >= 16).flatMap((text) => windows(text, 16)),
    Buffer.from(end).toString("hex"),
    ...isRandom ? windows(Buffer.from(end, "base64url").toString("latin1"), 12) : [],
  ];
}

/** Fails if a text has a trace of a secret that is not allowed there. */
function assertClean(text: string, where: string, isAllowed: (what: string) => boolean): void {
  for (const [what, secret] of secrets) {
    const isFound = !isAllowed(what) && tracesOf(secret).some((each) => text.includes(each));
    assert.ok(!isFound, `${what} is in ${where}`);
  }
}

/** Uses everything that takes or gives a secret, also in requests that are refused. */
async function useEverything(): Promise<void> {
  const { api } = gatepost;
  const marker = (what: string) => keep(what, newName("marker"));
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const app = await gatepost.createApp({ scopes: ["consumer"], resource_server: true });
  keep("client secret", app.secret);
  keep("Basic header", basicAuth(app).authorization.slice(6));
  const token = keep("login token", await gatepost.login(user));
  await api.postJson("/consumer/login", { ...user, password: marker("wrong password") });
  await api.postJson("/consumer/login", { username: marker("unknown name"), password: "x" });
  await api.send("POST", "/consumer/login", { body: marker("broken body") });

  const pair = newPkce();
  keep("verifier", pair.verifier.code_verifier);
  const state = marker("state");
  const browser = gatepost.openBrowser();
  const callback = await gatepost.allow(browser, app, user, { ...pair.challenge, state });
  for (const cookie of browser.cookies()) keep("cookie", cookie.value);
  const code = keep("code", callback.searchParams.get("code"));
  const exchange = { grant_type: "authorization_code", code, ...pair.verifier };
  const tokens = readTokens(await gatepost.token(app, exchange));
  await gatepost.token(app, exchange); // a second time
  keep("access token", tokens.access_token);
  const refresh_token = keep("refresh token", tokens.refresh_token);
  await gatepost.token(app, { grant_type: "refresh_token", refresh_token });
  await api.postForm("/authorization/introspect", { token: refresh_token }, basicAuth(app));
  await api.postForm("/authorization/revoke", { token: refresh_token }, basicAuth(app));
  await api.postForm(`/authorization/token?code=${code}`, { grant_type: marker("grant type") });
  await api.get("/authorization/whoami", bearer(marker("made-up token")));
  await api.get(`/authorization/whoami?access_token=${token}`);

  const personal = { name: "x", scopes: ["consumer"], expires_in: 60 };
  const own = readObject(await api.postJson("/consumer/token", personal, bearer(token)));
  await api.get("/authorization/whoami", bearer(keep("personal token", own["token"])));
  const tv = await gatepost.createApp({ grants: [DEVICE_GRANT] });
  const device = await newDevice(gatepost, tv);
  keep("device code", device.device_code);
  keep("user code", device.user_code);
  const asAdmin = bearer(gatepost.adminToken);
  const rotated = await api.postJson(`/backend/app/${tv.id}/secret`, {}, asAdmin);
  keep("rotated secret", readObject(rotated)["client_secret"]);
  const other = await gatepost.createUser();
  const change = { current: marker("wrong current password"), new: marker("new password") };
  const asOther = bearer(keep("other's token", await gatepost.login(other)));
  await api.sendJson("PUT", "/consumer/account/password", change, asOther);
  const right = { ...change, current: PASSWORD };
  await api.sendJson("PUT", "/consumer/account/password", right, asOther);

  const event = newName("event");
  const endpoint = `${receiver.url}/a?key=${marker("endpoint's query")}`;
  const body = { event, endpoint };
  const made = readObject(await api.postJson("/consumer/subscription", body, bearer(token)));
  keep("signing secret", made["secret"]);
  receiver.answer("/a", 500, { "x-secret": marker("subscriber's header") });
  const data = { secret: marker("event's data") };
  await api.postJson("/backend/event", { name: event, data }, bearer(gatepost.adminToken));
  await receiver.waitFor(2, 5000, "/a");

  const query = marker("query");
  const path = `/orders/${marker("path")}?q=${query}`;
  await api.postJson(path, { note: marker("body") }, bearer(token));
  await api.get(`/${marker("unknown path")}?q=${query}`);
  await api.get("/system/metrics", bearer(METRICS_TOKEN));
  const port = Number(new URL(gatepost.server.url).port);
  await exchangeRaw(port, `GET /${marker("no request")} HTTP/9.9\r\n\r\n`, { waitMs: 2000 });
  await exchangeRaw(port, `GET / HTTP/1.1\r\nX: ${marker("a head without Host")}\r\n\r\n`);
}

test("no secret of a run is in what administrators read or in the database's files", async () => {
  await useEverything();
  const files = () =>
    readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1")).join("\n");
  const texts = [["the files of a running server", files()]];
  for (const path of LISTS) {
    const { status, text } = await gatepost.api.get(path, bearer(gatepost.adminToken));
    texts.push([`${status} ${path}`, text]);
  }
  await gatepost.stop();
  texts.push(["the files that a server has left", files()]);
  for (const [where = "", text = ""] of texts) {
    assert.doesNotMatch(where, /^[345]/);
    assertClean(text, where, (what) => DATA.includes(what));
  }
  const data = secrets.get(DATA[0] ?? "") ?? "";
  assert.equal(texts[0]?.[1]?.includes(data), !isOnRqlite, "the test finds what is stored");
});

test("the log of a whole run holds no secret, query, body or path of a client", () => {
  const { lines, stderr } = gatepost.server;
  assert.ok(lines.length > 20, `${lines.length} lines`);
  const text = `${lines.join("\n")}\n${stderr()}`;
  assertClean(text, "the log", () => false);
  assert.ok(secrets.size > 30);
});

test("every line of the log is JSON with time, level and message", () => {
  for (const line of gatepost.server.lines) {
    const { time, level, msg }: Record<string, unknown> = JSON.parse(line);
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.match(String(level), /^(debug|info|warn|error)$/);
    assert.equal(typeof msg, "string");
  }
});

test("what an endpoint module prints goes to stderr and not to the log", async (t) => {
  const folder = await createDataFolder();
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "a.mjs"), 'console.log("from a module");');
  const env = { GATEPOST_ENDPOINTS: folder };
  const server = await startServer({ env, folder, entry: SOURCE_ENTRY });
  assert.equal(await server.stop(), 0);
  for (const line of server.lines) assert.equal(typeof JSON.parse(line).msg, "string");
  assert.match(server.stderr(), /^from a module$/m);
});

test("a request is one line of the log, with its method, route, status, ms, id and sub", () => {
  const requests = gatepost.server.lines.map((line): Record<string, unknown> => JSON.parse(line))
    .filter(({ msg }) => msg === "request");
  assert.ok(requests.length > 20, `${requests.length} requests`);
  const names = "time level msg method route status ms request_id".split(" ");
  for (const { sub, ...line } of requests) {
    assert.deepEqual(Object.keys(line), names);
    assert.ok(sub === undefined || /^[ua][0-9a-z]+$/.test(String(sub)));
    const { ms } = line;
    assert.ok(typeof ms === "number" && ms >= 0 && ms < 20_000);
    assert.match(String(ms), /^\d+(\.\d{1,2})?$/, "rounded to a hundredth");
  }
  const ids = requests.map(({ request_id }) => request_id);
  assert.equal(new Set(ids).size, ids.length);
  const order = requests.find(({ route }) => route === "/orders/:id");
  assert.match(String(order?.["sub"]), /^u/);
  assert.ok(requests.some(({ route, status }) => route === "" && status === 404));
});

test("input that is not a request is logged in one line, too", () => {
  const refused = gatepost.server.lines.map((line): Record<string, unknown> => JSON.parse(line))
    .filter(({ msg }) => msg === "refused");
  assert.deepEqual(refused.map(({ status, code }) => [status, code]), [
    [400, "malformed"],
    [400, "malformed"],
  ]);
  assert.match(String(refused[0]?.["request_id"]), /^[0-9a-f]{24}$/);
});
