import assert from "node:assert/strict";
import { access, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { createDataFolder } from "../helpers/process.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const MODULE = `
  import { existsSync, writeFileSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";

  /** Runs until the file "NAME.go" is there; the file "NAME.runs" says that it has begun. */
  export const order = {
    method: "POST", path: "/order/:name", scope: [], idempotent: true,
    emits: { "order.placed": "An order was placed" },
    async handle({ params: { name }, body, dispatch }) {
      const path = import.meta.dirname + "/" + name;
      writeFileSync(path + ".runs", "");
      while (body.waits && !existsSync(path + ".go")) await sleep(5);
      const id = dispatch(name, body);
      return { status: 201, headers: { location: "/order/" + id, "x-made": "1" }, body: { id } };
    },
  };
`;
// Tokens stay valid after a restart.
const BASE = { GATEPOST_BASE_URL: "http://gatepost.test" };
const LEASE_MS = 20_000;

let folder: string;
let gatepost: Gatepost;
let aheadMs = 0;
before(async () => {
  folder = await createDataFolder();
  await writeFile(join(folder, "order.mjs"), MODULE);
  await start();
});
after(async () => {
  await gatepost.stop();
  await rm(folder, { recursive: true });
});

/** Starts the server on the folder, with its clock `aheadMs` ahead. */
async function start(): Promise<void> {
  const clock = join(folder, "clock");
  await writeFile(clock, String(aheadMs));
  const preload = new URL("../helpers/set_clock.ts", import.meta.url);
  gatepost = await startGatepost({
    folder,
    env: {
      ...BASE,
      GATEPOST_ENDPOINTS: folder,
      NODE_OPTIONS: `--import=${preload}`,
      TEST_CLOCK: clock,
    },
  });
}

function send(path: string, key: string, body: unknown, token = gatepost.adminToken) {
  return gatepost.api.postJson(path, body, { ...bearer(token), "idempotency-key": key });
}

async function countEvents(name: string): Promise<number> {
  const path = `/backend/event?name=${name}`;
  return readItems(await gatepost.api.get(path, bearer(gatepost.adminToken))).length;
}

function assertSame(response: ClientResponse, first: ClientResponse): void {
  const parts = ({ status, text, headers }: ClientResponse) =>
    [status, text, ...["content-type", "location", "x-made"].map((name) => headers.get(name))];
  assert.deepEqual(parts(response), parts(first));
}

type Call = (name: string, key: string, data: object) => Promise<ClientResponse>;

const ENDPOINTS: [what: string, call: Call][] = [
  ["an endpoint of a module", (name, key, data) => send(`/order/${name}`, key, data)],
  ["POST /backend/event", (name, key, data) => send("/backend/event", key, { name, data })],
];
for (const [what, call] of ENDPOINTS) {
  test(`${what}: a repeat makes no second event, even after a restart`, async () => {
    const [name, key] = [newName("e"), newName("key")];
    const first = await call(name, key, { n: 1 });
    assert.ok(first.status === 201 || first.status === 202, first.text);
    assertSame(await call(name, key, { n: 1 }), first);
    assertSame(await call(name, `"${key}"`, { n: 1 }), first);
    assertProblem(await call(name, key, { n: 2 }), 422);
    assertProblem(await call(name, "", { n: 1 }), 400);
    await gatepost.stop();
    await start();
    assertSame(await call(name, key, { n: 1 }), first);
    assert.equal(await countEvents(name), 1);
    await call(name, newName("key"), { n: 1 });
    assert.equal(await countEvents(name), 2);
  });

  test(`${what}: 200 requests at the same time make one event`, async () => {
    const [name, key] = [newName("e"), newName("key")];
    const responses = await Promise.all(
      Array.from({ length: 200 }, () => call(name, key, { n: 1 })),
    );
    const done = responses.filter(({ status }) => status < 300);
    const [first] = done;
    assert.ok(first);
    for (const each of done) assertSame(each, first);
    for (const each of responses) if (!done.includes(each)) assertProblem(each, 409);
    assertSame(await call(name, key, { n: 1 }), first);
    assert.equal(await countEvents(name), 1);
  });
}

test("POST /backend/event: an event key that exists gets the first event's response", async () => {
  const [name, key] = [newName("e"), newName("key")];
  const body = { name, data: 1, key: "7" };
  const first = await send("/backend/event", key, body);
  assertSame(await send("/backend/event", newName("key"), body), first);
  assertSame(await send("/backend/event", key, body), first);
  assertProblem(await send("/backend/event", key, { ...body, data: 2 }), 422);
  assert.equal(await countEvents(name), 1);
});

test("callers do not share keys", async () => {
  const [name, key] = [newName("e"), newName("key")];
  const tokens = [gatepost.adminToken, await gatepost.login(await gatepost.createUser())];
  for (const token of tokens) await send(`/order/${name}`, key, {}, token);
  assert.equal(await countEvents(name), 2);
});

/** Starts a request whose handler waits for `release`. */
async function startRequest(name: string, key: string) {
  const running = send(`/order/${name}`, key, { waits: true });
  running.catch(() => {});
  await until(() => access(join(folder, `${name}.runs`)).then(() => true, () => false));
  return { running, release: () => writeFile(join(folder, `${name}.go`), "") };
}

test("a repeat gets 409 with Retry-After while the first request runs", async () => {
  const [name, key] = [newName("e"), newName("key")];
  const { running, release } = await startRequest(name, key);
  const refused = await send(`/order/${name}`, key, { waits: true });
  assertProblem(refused, 409);
  assert.equal(refused.headers.get("retry-after"), "1");
  assertProblem(await send(`/order/${name}`, key, {}), 422);
  await release();
  const first = await running;
  assertSame(await send(`/order/${name}`, key, { waits: true }), first);
  assert.equal(await countEvents(name), 1);
});

test("after a kill between claim and commit, a repeat runs once the lease is over", async () => {
  const [name, key] = [newName("e"), newName("key")];
  const { running, release } = await startRequest(name, key);
  await gatepost.server.kill();
  await assert.rejects(running);
  await release();
  await start();
  assertProblem(await send(`/order/${name}`, key, { waits: true }), 409);
  assert.equal(await countEvents(name), 0);
  aheadMs += LEASE_MS;
  await gatepost.stop();
  await start();
  const first = await send(`/order/${name}`, key, { waits: true });
  assert.equal(first.status, 201, first.text);
  assertSame(await send(`/order/${name}`, key, { waits: true }), first);
  assert.equal(await countEvents(name), 1);
});

test("the OpenAPI document says which operations take a key", async () => {
  const response = await gatepost.api.get("/openapi.json", bearer(gatepost.adminToken));
  const paths: object = Object(readObject(response)["paths"]);
  const taking = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(Object(item))
      .filter(([, operation]) => JSON.stringify(operation).includes("Idempotency-Key"))
      .map(([method, operation]) => ({ path, method, responses: Object(operation).responses }))
  );
  assert.partialDeepStrictEqual(taking, [
    { path: "/backend/event", method: "post" },
    { path: "/order/{name}", method: "post" },
  ]);
  for (const { responses } of taking) assert.ok("409" in responses && "422" in responses);
});
