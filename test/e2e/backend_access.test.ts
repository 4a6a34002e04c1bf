import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { bearer, basicAuth } from "../helpers/requests.ts";
import {
  assertProblem,
  expectStatus,
  readItems,
  readObject,
  readTokens,
} from "../helpers/responses.ts";

let stage: EventStage;
/** A token that has only scope backend:read, and one that has only scope consumer. */
let reader: string;
let consumer: string;

before(async () => {
  stage = await startEventStage();
  reader = await stage.newConsumer(["backend:read"]);
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

/** Checks that a request gets 401 without a token, and 403 with one that lacks scope backend. */
async function assertNeedsBackend(method: string, path: string): Promise<void> {
  assertProblem(await stage.gatepost.api.send(method, path), 401);
  const response = await stage.call(method, path, consumer);
  assertProblem(response, 403);
  const challenge = response.headers.get("www-authenticate") ?? "";
  assert.match(challenge, /insufficient_scope.*scope="backend"/);
}

const USERS_AND_APPS: readonly (readonly [string, string])[] = [
  ["GET", "/backend/user"],
  ["POST", "/backend/user"],
  ["GET", "/backend/user/u0"],
  ["PATCH", "/backend/user/u0"],
  ["DELETE", "/backend/user/u0"],
  ["GET", "/backend/app"],
  ["POST", "/backend/app"],
  ["GET", "/backend/app/a0"],
  ["PATCH", "/backend/app/a0"],
  ["DELETE", "/backend/app/a0"],
  ["POST", "/backend/app/a0/secret"],
];

test("users and apps need a token with scope backend", async () => {
  for (const [method, path] of USERS_AND_APPS) await assertNeedsBackend(method, path);
});

const AUTHORITY: readonly (readonly [string, string])[] = [
  ["GET", "/backend/grant"],
  ["DELETE", "/backend/grant/g0"],
  ["POST", "/backend/grant/revoke"],
  ["GET", "/backend/audit"],
  ["GET", "/backend/cronjob"],
  ["POST", "/backend/cronjob/quick/run"],
];

for (const [method, path] of AUTHORITY) {
  test(`${method} ${path} needs a token with scope backend`, () =>
    assertNeedsBackend(method, path));
}

describe("access", () => {
  const ROUTES = [
    ["POST", "/backend/event"],
    ["GET", "/backend/event"],
    ["GET", "/backend/event/e0"],
    ["GET", "/backend/delivery"],
    ["GET", "/backend/delivery/d0"],
    ["POST", "/backend/delivery/d0/resend"],
    ["POST", "/backend/delivery/resend"],
    ["GET", "/backend/resend"],
    ["GET", "/backend/resend/w0"],
    ["DELETE", "/backend/resend/w0"],
    ["GET", "/backend/subscription"],
    ["GET", "/backend/subscription/s0"],
    ["PATCH", "/backend/subscription/s0"],
    ["DELETE", "/backend/subscription/s0"],
  ] as const;
  for (const [method, path] of ROUTES) {
    test(`${method} ${path} needs scope backend`, () => assertNeedsBackend(method, path));
  }
});

/** Every operation of the backend, with unknown ids in its path. */
async function listOperations(): Promise<[method: string, path: string, opens: string[]][]> {
  const { paths }: { paths: Record<string, Record<string, { security: object[] }>> } =
    JSON.parse((await stage.gatepost.api.get("/openapi.json")).text);
  return Object.entries(paths).filter(([path]) => path.startsWith("/backend/"))
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, { security }]): [string, string, string[]] => [
        method.toUpperCase(),
        path.replace(/\{.*?\}/g, "x0"),
        security.flatMap((each) => Object.values(each).flat()),
      ])
    );
}

test("backend:read allows every GET of /backend and nothing else, as OpenAPI says", async () => {
  const operations = await listOperations();
  assert.ok(operations.length > 30);
  for (const [method, path, opens] of operations) {
    const asked = method === "GET" ? "HEAD" : method; // a stream would not end
    const response = await stage.gatepost.api.sendJson(asked, path, undefined, bearer(reader));
    assert.equal(
      response.status !== 403,
      method === "GET",
      `${method} ${path}: ${response.status}`,
    );
    assert.equal(opens.includes("backend:read"), method === "GET", `${method} ${path}`);
    assert.ok(opens.includes("backend"), `${method} ${path}`);
  }
});

for (const path of ["/system/metrics", "/consumer/subscription"]) {
  test(`backend:read does not allow ${path}`, async () => {
    await expectStatus(403, stage.gatepost.api.get(path, bearer(reader)));
  });
}

test("backend does not include scope consumer", async () => {
  const operator = await stage.newConsumer(["backend"]);
  await expectStatus(200, stage.gatepost.api.get("/backend/user", bearer(operator)));
  await expectStatus(403, stage.gatepost.api.get("/consumer/subscription", bearer(operator)));
});

test("backend:read shows no parts of readiness and may not introspect", async () => {
  const { api } = stage.gatepost;
  assert.equal(readObject(await api.get("/system/ready", bearer(reader)))["parts"], undefined);
  const form = { token: reader };
  await expectStatus(403, api.postForm("/authorization/introspect", form, bearer(reader)));
});

test("only scope backend shows the snippet of a response", async () => {
  const subscription = await stage.subscribe(consumer, "read.snippet", 200);
  await stage.dispatch("read.snippet", {});
  await stage.deliveries(subscription, "delivered");
  const path = `/backend/delivery?subscription=${subscription.id}`;
  const [delivery] = readItems(await stage.call("GET", path, reader));
  const read = async (token: string) => {
    const response = await stage.call(
      "GET",
      `/backend/delivery/${String(delivery?.["id"])}`,
      token,
    );
    const { attempts }: { attempts: { snippet?: string }[] } = JSON.parse(response.text);
    return attempts.map(({ snippet }) => snippet);
  };
  assert.deepEqual(await read(stage.admin), ["not for you"]);
  assert.deepEqual(await read(reader), [undefined]);
});

test("backend:read is granted only if named, and resource metadata leaves it out", async () => {
  const { gatepost } = stage;
  const app = await gatepost.createApp({ scopes: ["consumer", "backend:read"] });
  const ask = async (more: Readonly<Record<string, string>>) => {
    const form = { grant_type: "client_credentials", ...more };
    const response = await gatepost.api.postForm("/authorization/token", form, basicAuth(app));
    return readTokens(response).scope;
  };
  assert.equal(await ask({}), "consumer");
  assert.equal(await ask({ scope: "backend:read" }), "backend:read");
  const metadata = await gatepost.api.get("/.well-known/oauth-protected-resource");
  const { scopes_supported }: { scopes_supported: string[] } = JSON.parse(metadata.text);
  assert.deepEqual(scopes_supported.filter((scope) => scope.startsWith("backend")), []);
});

test("a trusted app gets backend:read only after the consent page", async () => {
  const { gatepost } = stage;
  const app = await gatepost.createApp({ scopes: ["backend:read"], trusted: true });
  const user = await gatepost.createUser({ scopes: ["backend:read"] });
  const browser = await gatepost.openLoggedIn(app, user);
  const page = await gatepost.authorize(browser, app, { scope: "backend:read" });
  assert.equal(page.status, 200);
  assert.match(page.text, /Read all that this service holds/);
});
