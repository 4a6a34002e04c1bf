import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createReceivers,
  receiveOperation,
  receiverOperations,
} from "../../../src/api/backend/receiver.ts";
import type { Services } from "../../../src/services.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";

function openStage() {
  const receivers = createReceivers("http://127.0.0.1:8080");
  const state = { isDown: false };
  const services = {
    database: {
      async write() {
        if (state.isDown) throw new Error("down");
        return [1];
      },
    },
    revocations: { refresh: async () => {} },
    wake() {},
    now: Date.now,
  } as unknown as Services; // the ones that it uses
  const all = [...receiverOperations(receivers, services), receiveOperation(receivers, services)];
  const call = async (name: string, id = "", more: object = {}, body?: object) => {
    const operation = all.find((each) => each.id === name);
    assert.ok(operation);
    const response = await operation.handle({
      request: sampleRequest(more),
      params: { id },
      caller: backendCaller(Infinity),
      query: {},
      body,
      authenticateAgain: async () => {},
    });
    return { status: response.status, ...JSON.parse(String(response.body ?? "{}")) };
  };
  return { state, receivers, call };
}

test("a receiver expires an hour after it was made", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { call } = openStage();
  const { id } = await call("addReceiver");
  t.mock.timers.tick(3_599_999);
  assert.equal((await call("receive", id, { body: "1" })).status, 200);
  t.mock.timers.tick(1);
  await assert.rejects(call("receive", id, { body: "2" }), { status: 404 });
  await assert.rejects(call("getReceiver", id), { status: 404 });
});

test("a receiver's id is alphanumeric", async () => {
  const { call } = openStage();
  for (let n = 0; n < 20; n++) assert.match((await call("addReceiver")).id, /^[0-9a-z]+$/);
});

test("a receiver keeps the last 20 callbacks, the newest first", async () => {
  const { call } = openStage();
  const { id } = await call("addReceiver");
  for (let n = 1; n <= 21; n++) await call("receive", id, { body: String(n) });
  const { callbacks } = await call("getReceiver", id);
  assert.deepEqual(callbacks.map(({ body }: { body: string }) => Number(body)),
    Array.from({ length: 20 }, (_, index) => 21 - index));
});

test("a receiver that is set not to respond waits until the client disconnects", async () => {
  const { call } = openStage();
  const { id } = await call("addReceiver");
  await call("changeReceiver", id, {}, { answer: "none" });
  const client = new AbortController();
  let isOver = false;
  const waiting = call("receive", id, { signal: client.signal }).then(() => isOver = true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(isOver, false);
  client.abort();
  await waiting;
  await call("receive", id, { signal: client.signal }); // it had disconnected before
});

test("a receiver is not made where that cannot be audited", async () => {
  const { state, receivers, call } = openStage();
  state.isDown = true;
  await assert.rejects(call("addReceiver"), /down/);
  assert.equal(receivers.byId.size, 0);
});

test("a 21st receiver is refused until another one is deleted", async () => {
  const { call } = openStage();
  const { id } = await call("addReceiver");
  for (let n = 2; n <= 20; n++) await call("addReceiver");
  await assert.rejects(call("addReceiver"), { status: 409, code: "limit" });
  await call("deleteReceiver", id);
  assert.equal((await call("addReceiver")).status, 201);
});
