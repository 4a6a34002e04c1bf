import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "../../src/base/problem.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import { type Database, OutcomeUnknownError } from "../../src/database/database.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";
import { hostedOperation } from "../../src/hosting/handle.ts";
import type { Context, Dispatch } from "../../src/mod.ts";
import { listDispatched } from "../../src/store/events.ts";
import { HOSTED_CALLER, hostingServices, loadedEndpoint } from "../helpers/hosting.ts";
import { sampleRequest } from "../helpers/http_request.ts";

type Members = Readonly<Record<string, unknown>>;
type Sent = Readonly<Record<string, string>>;
type Handle = (context: Context<unknown> & { readonly dispatch: Dispatch<never> }) => unknown;

const ENDPOINT = {
  method: "POST",
  path: "/orders",
  scope: [],
  emits: { "order.placed": "An order was placed" },
  idempotent: true,
  handle() {},
};

function errorsOf(more: Members): readonly FieldError[] {
  const errors: FieldError[] = [];
  checkEndpoint({ ...ENDPOINT, ...more }, { file: "a.ts", exportName: "a" }, errors);
  return errors;
}

test("idempotent is allowed only for endpoints that emit events, and not for GET", () => {
  assert.deepEqual(errorsOf({}), []);
  assert.deepEqual(errorsOf({ idempotent: false, method: "GET", emits: {} }), []);
  for (const more of [{ method: "GET" }, { emits: {} }, { emits: undefined }]) {
    assert.deepEqual(errorsOf(more).map(({ pointer }) => pointer), ["/idempotent"]);
  }
  const [error] = errorsOf({ idempotent: "yes" });
  assert.deepEqual(error, { pointer: "/idempotent", detail: "Must be true or false." });
});

/** An endpoint on a database in memory, and requests with one key. */
function stage(handle: Handle, more: Members = {}, database: Database = createMemoryDatabase()) {
  const operation = hostedOperation(
    loadedEndpoint({ ...ENDPOINT, ...more, handle }),
    hostingServices({ database }),
  );
  const send = async (body = "{}", type = "application/json", more: Sent = {}) => {
    const request = sampleRequest({
      method: "POST",
      path: "/orders",
      body,
      headers: {
        "idempotency-key": "k1",
        "content-type": type,
        "content-length": String(Buffer.byteLength(body)),
        ...more,
      },
    });
    const authenticateAgain = () => Promise.resolve();
    const parts = { request, params: {}, query: {}, body: undefined, authenticateAgain };
    const response = await operation.handle({ ...parts, caller: HOSTED_CALLER });
    const bytes = response.body ?? "";
    assert.ok(!(bytes instanceof ReadableStream));
    return { ...response, body: Buffer.from(bytes).toString() };
  };
  const events = async () => (await listDispatched(database)).map(({ json }) => json);
  return { send, events };
}

const dispatching: Handle = ({ dispatch, body }) => {
  const id = dispatch("order.placed", body ?? null);
  return { status: 201, headers: { location: `/orders/${id}` }, body: { id } };
};

test("a repeat makes no second event, and gets the first response with its headers", async () => {
  const { send, events } = stage(dispatching);
  const [first, again] = [await send(), await send()];
  assert.equal(first.status, 201);
  assert.deepEqual(again, first);
  assert.deepEqual(await events(), ["{}"]);
});

test("the key is ignored if the endpoint is not idempotent", async () => {
  const { send, events } = stage(dispatching, { idempotent: false });
  await send();
  await send('{"n":2}');
  assert.deepEqual(await events(), ["{}", '{"n":2}']);
});

test("bodies of any type are compared, and the handler can read them", async () => {
  const { send, events } = stage(async ({ request, dispatch }) => {
    dispatch("order.placed", await request.text());
  });
  await send("a", "text/plain");
  await send("a", "text/plain");
  await assert.rejects(send("b", "text/plain"), { status: 422 });
  assert.deepEqual(await events(), ['"a"']);
});

test("an invalid request does not use up its key", async () => {
  const schema = { type: "object", required: ["n"] };
  const { send, events } = stage(dispatching, { input: { body: schema } });
  await assert.rejects(send("{}"), { status: 400 });
  assert.equal((await send('{"n":1}')).status, 201);
  assert.deepEqual(await events(), ['{"n":1}']);
});

test("flush() in an idempotent endpoint rejects, and nothing is stored", async () => {
  const { send, events } = stage(async ({ dispatch }) => {
    dispatch("order.placed", 1);
    await dispatch.flush();
  });
  for (const headers of [{}, { "idempotency-key": "k2" }]) {
    await assert.rejects(send("{}", undefined, headers), { status: 500 });
  }
  assert.deepEqual(await events(), []);
});

test("an event's own key still makes one event of two requests", async () => {
  const { send, events } = stage(({ dispatch, body }) => {
    dispatch("order.placed", body, { key: "7" });
  });
  await send("[1]");
  await send("[1]");
  await send("[2]", undefined, { "idempotency-key": "k2" });
  assert.deepEqual(await events(), ["[1]"]);
});

test("a stream is cancelled and becomes a 500, and nothing is stored", async (t) => {
  const cancel = t.mock.fn();
  const { send, events } = stage(({ dispatch }) => {
    dispatch("order.placed", 1);
    return new Response(new ReadableStream({ cancel }));
  });
  await assert.rejects(send(), { status: 500 });
  assert.equal(cancel.mock.callCount(), 1);
  assert.deepEqual(await events(), []);
});

test("an unknown outcome leads to 503, and a repeat makes no second event", async () => {
  const memory = createMemoryDatabase();
  let writes = 0;
  const { send, events } = stage(dispatching, {}, {
    ...memory,
    async write(batch) {
      const changes = await memory.write(batch);
      if (++writes === 2) throw new OutcomeUnknownError("unknown");
      return changes;
    },
  });
  await assert.rejects(send(), { status: 503, code: "outcome_unknown" });
  assert.equal((await send()).status, 201);
  assert.deepEqual(await events(), ["{}"]);
});

test("a repeat gets the same refusal, which stores no event", async () => {
  let runs = 0;
  const { send, events } = stage(({ dispatch }) => {
    dispatch("order.placed", 1);
    throw { status: 409, detail: `Sold ${++runs}.` };
  });
  assert.match((await send()).body, /Sold 1/);
  assert.match((await send()).body, /Sold 1/);
  assert.deepEqual(await events(), []);
});
