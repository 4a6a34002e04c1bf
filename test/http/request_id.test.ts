import assert from "node:assert/strict";
import { test } from "node:test";
import { newRequestId } from "../../src/http/request_id.ts";

test("newRequestId() makes ids that sort by their time", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
  const ids = Array.from({ length: 1_000 }, () => {
    t.mock.timers.tick(1);
    return newRequestId();
  });
  assert.deepEqual(ids, ids.toSorted());
  for (const id of ids) assert.match(id, /^[0-9a-f]{24}$/);
});

test("newRequestId() makes no id twice in one millisecond", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
  const ids = Array.from({ length: 10_000 }, newRequestId);
  assert.equal(new Set(ids).size, ids.length);
});
