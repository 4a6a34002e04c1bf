import assert from "node:assert/strict";
import { test } from "node:test";
import { system } from "../../src/api/operation.ts";
import { sampleRequest } from "../helpers/http_request.ts";

test("a handler that returns nothing responds with 204", async () => {
  const context = {
    request: sampleRequest(), params: {}, caller: undefined, query: {}, body: undefined,
    authenticateAgain: () => Promise.resolve(),
  };
  const shared = { responses: { 204: undefined } };
  const empty = system("DELETE", "/x", "a", "A", { ...shared, handle: async () => {} });
  assert.deepEqual(await empty.handle(context), { status: 204 });
  const other = system("GET", "/x", "b", "B", { ...shared, handle: async () => ({ status: 202 }) });
  assert.deepEqual(await other.handle(context), { status: 202 });
});
