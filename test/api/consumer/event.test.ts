import assert from "node:assert/strict";
import { test } from "node:test";
import { eventCatalogueOperation } from "../../../src/api/consumer/event.ts";
import { shown } from "../../../src/base/shape.ts";
import { createMemoryDatabase } from "../../../src/database/memory.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";

test("the catalogue shows the schema and the example of an event that has them", async () => {
  const data = shown({ type: "object", properties: { n: { type: "number" } } });
  const { handle } = eventCatalogueOperation({
    database: createMemoryDatabase(),
    events: [
      { name: "a", description: "A", scope: [], data, example: { n: 1 } },
      { name: "b", description: "B", scope: [], data: undefined, example: undefined },
    ],
  });
  const { body } = await handle({
    request: sampleRequest(),
    params: {},
    caller: backendCaller(1),
    query: { limit: 10 },
    body: undefined,
    authenticateAgain: () => Promise.resolve(),
  });
  assert.deepEqual(JSON.parse(String(body)), {
    items: [
      { name: "a", description: "A", schema: data.schema, example: { n: 1 } },
      { name: "b", description: "B" },
    ],
    next_cursor: null,
  });
});
