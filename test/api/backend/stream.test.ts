import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { streamOperation } from "../../../src/api/backend/stream.ts";
import type { Database } from "../../../src/database/database.ts";
import type { WatchDeliveries } from "../../../src/event/delivery_record.ts";
import type { Services } from "../../../src/services.ts";
import { openDatabase } from "../../helpers/database.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";
import { until } from "../../helpers/until.ts";

/** The operation on its own clock, with the number of its queries. */
function openStage(t: TestContext, warnings: readonly string[] = []) {
  const stored = openDatabase(t);
  const state = {
    nowMs: Date.UTC(2026, 0, 1),
    queries: 0,
    report: undefined as WatchDeliveries | undefined,
    isTokenGood: true,
  };
  const database: Database = {
    ...stored,
    query(statement) {
      state.queries++;
      return stored.query(statement);
    },
  };
  const services = {
    database,
    heavy: database,
    warnings,
    disk: async () => undefined,
    config: { disableAfterMs: 0 },
    now: () => state.nowMs,
    readiness: async () => ({ isReady: true, parts: {} }),
    keys: { findSigning: () => ({ signsFromMs: state.nowMs }) },
    jobs: { listCronjobs: async () => [] },
    log: { debug() {} },
    watchDeliveries: (report: WatchDeliveries | undefined) => state.report = report,
    bearer: {
      authenticate: async () => {
        if (!state.isTokenGood) throw new Error("ended");
      },
    },
  } as unknown as Services; // the ones that it uses
  const operation = streamOperation(services);
  const open = async (topics: string) => {
    const { body } = await operation.handle({
      request: sampleRequest(),
      params: {},
      caller: backendCaller(Infinity),
      query: { topics },
      body: undefined,
      authenticateAgain: () => Promise.resolve(),
    });
    assert.ok(body instanceof ReadableStream);
    return body.getReader();
  };
  return { state, open };
}

/** The rest of a stream, up to its end. */
async function readRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += Buffer.from(value).toString();
  }
}

test("the database is read only while a stream has a client", async (t) => {
  const { state, open } = openStage(t);
  assert.equal(state.queries, 0);
  const reader = await open("delivery,audit");
  await until(() => state.queries > 0 && state.report !== undefined);
  await reader.cancel();
  assert.equal(state.report, undefined);
  const { queries } = state;
  state.nowMs += 60_000;
  await new Promise((resolve) => setTimeout(resolve, 1_200)); // two ticks
  assert.equal(state.queries, queries);
});

test("the stream of a client that reads nothing stays small and ends at a heartbeat", async (t) => {
  const { state, open } = openStage(t, [`GATEPOST_X: ${"x".repeat(100_000)}`]);
  const reader = await open("problem");
  const before = state.queries;
  await until(() => state.queries > before); // the problems are in the buffer, and fill it
  for (let minute = 0; minute < 3; minute++) {
    state.nowMs += 5_000; // they are queried again, and have not changed
    await new Promise((resolve) => setTimeout(resolve, 600));
  }
  const text = await readRest(reader);
  assert.equal(text.match(/^event: problem$/gm)?.length, 1);
  assert.ok(text.length < 200_000, String(text.length));
});

test("a client that was slow for a while then gets the current problems", async (t) => {
  const warnings = [`GATEPOST_X: ${"x".repeat(100_000)}`];
  const { state, open } = openStage(t, warnings);
  const reader = await open("problem");
  const before = state.queries;
  await until(() => state.queries > before); // the problems are in the buffer, and fill it
  warnings.push("GATEPOST_Y: new");
  state.nowMs += 5_000;
  await new Promise((resolve) => setTimeout(resolve, 1_200)); // two ticks
  let text = "";
  const read = async () => text += Buffer.from((await reader.read()).value ?? []).toString();
  while (!text.includes("GATEPOST_X")) await read();
  state.nowMs += 5_000;
  await Promise.race([read(), new Promise((resolve) => setTimeout(resolve, 3_000))]);
  assert.match(text, /GATEPOST_Y/);
  await reader.cancel();
});

test("a client that reads gets a heartbeat every 15 seconds", async (t) => {
  const { state, open } = openStage(t);
  const reader = await open("audit");
  let text = "";
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += Buffer.from(value).toString();
    }
  })();
  for (const beats of [1, 2]) {
    state.nowMs += 15_000;
    // The stream begins with the id from which a client can resume.
    await until(() => new RegExp(`^id: \\d+\n\n(:\n\n){${beats}}$`).test(text));
  }
  state.isTokenGood = false;
  await reading;
});

test("at most 5,000 changed deliveries are remembered until the next tick", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { state, open } = openStage(t);
  const reader = await open("delivery");
  await reader.read(); // the id from which a client can resume
  for (let batch = 0; batch < 60; batch++) {
    state.report?.(Array.from({ length: 100 }, (_, at) => (
      { id: `d${batch}_${at}`, subscription: "s1" }
    )));
  }
  state.nowMs += 1_000;
  t.mock.timers.tick(1_000);
  const { value } = await reader.read();
  assert.match(Buffer.from(value ?? []).toString(), /^event: dropped\ndata: {"count":4998}\n/);
  await reader.cancel();
});
