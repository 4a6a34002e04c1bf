import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../src/mod.ts";
import type { StoredEvent } from "../helpers/hosting.ts";
import { call, type Handle } from "./handle_stage.ts";

test("the events of a request are stored together, in order, before its response", async () => {
  const commits: (readonly StoredEvent[])[] = [];
  let isStored = false;
  const { response } = await call(async ({ dispatch }) => {
    const first = dispatch("a", { n: 1 });
    await Promise.resolve();
    return { first, second: dispatch("b", null, { subject: "u00000007" }) };
  }, {}, {
    async store(events) {
      commits.push(events);
      await new Promise((resolve) => setImmediate(resolve));
      isStored = true;
    },
  });
  assert.ok(isStored);
  const { first, second } = JSON.parse(String(response?.body));
  assert.deepEqual(commits, [[
    { id: first, name: "a", json: '{"n":1}', subject: null },
    { id: second, name: "b", json: "null", subject: "u00000007" },
  ]]);
});

test("a request without events commits nothing", async () => {
  const store = (): Promise<void> => assert.fail("committed");
  assert.equal((await call(() => undefined, {}, { store })).response?.status, 204);
});

test("events are stored for a returned response below 500 and for no other", async () => {
  const cases: [handle: Handle, count: number][] = [
    [() => ({ status: 200 }), 1],
    [() => ({ status: 404 }), 1],
    [() => ({ status: 499 }), 1],
    [() => ({ status: 500 }), 0],
    [() => ({ status: 503, body: {} }), 0],
    [() => ({ status: 600 }), 1],
    [() => new Response("x", { status: 201 }), 1],
    [() => new Response("x", { status: 502 }), 0],
    [() => Promise.reject(new Error("late")), 0],
    [() => {
      throw { status: 404 };
    }, 0],
    [() => 1n, 0],
    [() => ({ status: 200, headers: { "x-a": "a\r\nb" } }), 0],
    [() => new Response("x", { headers: { "x-a": "a\x01b" } }), 0],
  ];
  for (const [handle, count] of cases) {
    const { stored } = await call((context) => {
      context.dispatch("a", 1);
      return handle(context);
    });
    assert.equal(stored.length, count, String(handle));
  }
});

test("a failed commit leads to a logged 503 with Retry-After, and ends the stream", async () => {
  const ends: string[] = [];
  const abort = () => void ends.push("signal");
  const { problem, stored, lines } = await call(({ dispatch }) => {
    dispatch("a", 1);
    return new Response(new ReadableStream({ cancel: () => void ends.push("stream") }));
  }, { abort }, { store: () => Promise.reject(new Error("disk full")) });
  assert.deepEqual(
    [problem?.status, problem?.code, problem?.headers["Retry-After"], stored.length, ends],
    [503, "unavailable", "2", 0, ["signal", "stream"]],
  );
  assert.ok(!problem?.message.includes("disk"));
  assert.deepEqual(lines.map(({ msg, fields }) => [msg, fields["request_id"]]), [
    ["events not stored", "r1"],
  ]);
});

test("events that a handler has flushed stay stored if the request fails", async () => {
  const fates: Handle[] = [
    () => ({ status: 500 }),
    () => {
      throw new Error("failed");
    },
    () => Promise.reject({ status: 409 }),
  ];
  for (const fate of fates) {
    const { stored } = await call(async (context) => {
      context.dispatch("a", 1, { key: "7" });
      await context.dispatch.flush();
      context.dispatch("b", 1);
      return fate(context);
    });
    assert.deepEqual(stored.map(({ name, key }) => [name, key]), [["a", "7"]]);
  }
});

test("a failed flush leads to a 503, unless the handler catches the error", async () => {
  let commits = 0;
  const store = () => ++commits % 2 === 1 ? Promise.reject(new Error("full")) : Promise.resolve();
  const flush: Handle = async ({ dispatch }) => {
    dispatch("a", 1);
    await dispatch.flush();
  };
  const failed = await call(flush, {}, { store });
  assert.deepEqual([failed.problem?.status, failed.problem?.headers["Retry-After"]], [503, "2"]);
  assert.deepEqual(failed.lines.map(({ msg }) => msg).at(-1), "events not stored");
  commits = 0;
  const caught = await call(async (context) => {
    await assert.rejects(async () => flush(context));
    context.dispatch("b", 1);
    return { status: 202 };
  }, {}, { store });
  assert.deepEqual([caught.response?.status, commits], [202, 2]);
});

test("the response waits for a flush that its handler did not await", async () => {
  const ends: Handle[] = [
    () => ({ status: 200 }),
    () => ({ status: 500 }),
  ];
  for (const end of ends) {
    const { problem } = await call((context) => {
      context.dispatch("a", 1);
      void context.dispatch.flush();
      return end(context);
    }, {}, {
      async store() {
        await new Promise((resolve) => setImmediate(resolve));
        throw new Error("full");
      },
    });
    assert.equal(problem?.status, 503);
  }
  let isStored = false;
  await call(({ dispatch }) => {
    dispatch("a", 1);
    void dispatch.flush();
    throw new Error("failed");
  }, {}, {
    async store() {
      await new Promise((resolve) => setImmediate(resolve));
      isStored = true;
    },
  });
  assert.equal(isStored, true);
});

test("the events of a streaming Response are stored before its first byte", async () => {
  const order: string[] = [];
  const { response } = await call(({ dispatch }) => {
    dispatch("a", 1);
    return new Response(new ReadableStream({
      pull(controller) {
        order.push("byte");
        controller.enqueue(Buffer.from("x"));
        controller.close();
      },
    }, { highWaterMark: 0 }));
  }, {}, {
    async store() {
      await new Promise((resolve) => setImmediate(resolve));
      order.push("commit");
    },
  });
  assert.ok(response?.body instanceof ReadableStream);
  assert.equal(await new Response(response.body).text(), "x");
  assert.deepEqual(order, ["commit", "byte"]);
});

test("dispatch throws once the handler has settled", async () => {
  for (const handle of [() => undefined, () => Promise.reject(new Error("failed"))]) {
    let kept: Context["dispatch"] | undefined;
    const { stored } = await call(({ dispatch }) => {
      kept = dispatch;
      return handle();
    });
    assert.throws(() => kept?.("a", 1), { name: "Error", message: /settled/ });
    assert.equal(stored.length, 0);
  }
});

test("an error of dispatch() leads to a 500, unless the handler catches it", async () => {
  assert.equal((await call(({ dispatch }) => dispatch("no name", 1))).problem?.status, 500);
  const { response, stored } = await call(({ dispatch }) => {
    dispatch("kept", 1);
    assert.throws(() => dispatch("gatepost.x", 1), TypeError);
    assert.throws(() => dispatch("large", "x".repeat(64)), RangeError);
  });
  assert.deepEqual([response?.status, stored.map(({ name }) => name)], [204, ["kept"]]);
});
