import assert from "node:assert/strict";
import { type Keep, respondOnce } from "../../src/api/idempotency.ts";
import type { HttpRequest, HttpResponse } from "../../src/base/http_message.ts";
import { newId } from "../../src/base/id.ts";
import { Problem } from "../../src/base/problem.ts";
import type { Database } from "../../src/database/database.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import { insertEvent, listDispatched } from "../../src/store/events.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";

export const CALLER = backendCaller(Infinity);
export const LEASE_MS = 20_000;
export const DAY_MS = 86_400_000;

type Run = (keep: Keep) => Promise<HttpResponse>;

export interface Sent extends Partial<Omit<HttpRequest, "readBody">> {
  readonly key?: string;
  readonly asked?: string | Uint8Array;
  readonly caller?: typeof CALLER | undefined;
}

type Write = Database["write"];
/** Does the `nth` write, from 1 on, in place of the database, which does it by `store`. */
type Intercept = (batch: Parameters<Write>[0], nth: number, store: Write) => ReturnType<Write>;

/** A database, and requests with key "k1" and body "{}" from one caller, changed as given. */
export function stage(write: Intercept = (batch, _nth, store) => store(batch)) {
  const memory = createMemoryDatabase();
  let writes = 0;
  const database: Database = {
    ...memory,
    write: (batch) => write(batch, ++writes, memory.write),
  };
  const clock = { nowMs: 1_000 };
  let runs = 0;

  /** Stores an event and its response together, as endpoints do. */
  const dispatch = async (keep: Keep): Promise<HttpResponse> => {
    const body = String(++runs);
    const id = newId("e", clock.nowMs);
    const event = { id, name: "a", json: body, subject: undefined, createdAtMs: clock.nowMs };
    const response = { status: 201, headers: { "X-Run": body, "set-cookie": ["a", "b"] }, body };
    await database.write([insertEvent(event), ...keep(response)]);
    return response;
  };
  async function send(sent: Sent = {}, run: Run = dispatch) {
    const { key = "k1", asked = "{}", ...more } = sent;
    const caller = "caller" in sent ? sent.caller : CALLER;
    const headers = { "idempotency-key": key, ...more.headers };
    const request = sampleRequest({ method: "POST", path: "/orders", ...more, headers });
    const services = { database, now: () => clock.nowMs };
    const { body, ...rest } = await respondOnce(services, { request, caller }, () => asked, run);
    assert.ok(!(body instanceof ReadableStream));
    return { ...rest, body: body === undefined ? undefined : Buffer.from(body).toString() };
  }
  const countEvents = async () => (await listDispatched(database)).length;
  return { database, store: memory.write, clock, send, dispatch, countEvents };
}

export const refused = (status: number) => (error: unknown) =>
  error instanceof Problem && error.status === status;
