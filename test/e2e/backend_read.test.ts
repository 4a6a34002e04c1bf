import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bearer, basicAuth, expectStatus, readObject, readTokens } from "../helpers/gatepost.ts";
import { type EventStage, readItems, startEventStage } from "../helpers/event_stage.ts";

let stage: EventStage;
/** A token that has only scope backend:read. */
let reader: string;

before(async () => {
  stage = await startEventStage();
  reader = await stage.newConsumer(["backend:read"]);
});
after(() => stage.stop());

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
  const consumer = await stage.newConsumer();
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
