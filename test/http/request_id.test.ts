import assert from "node:assert/strict";
import { test } from "node:test";
import { newRequestId } from "../../src/http/request_id.ts";
import { get, startHttpStage } from "./http_stage.ts";

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

test("a valid X-Request-Id is kept, any other is replaced", async (t) => {
  const { exchange } = await startHttpStage(t);
  const ask = async (id: string) => {
    const bytes = get("/", `X-Request-Id: ${id}\r\n`);
    return (await exchange(bytes, { finish: true })).responses[0]?.headers["x-request-id"];
  };
  assert.equal(await ask("abc.DEF:1_2-3"), "abc.DEF:1_2-3");
  assert.match(await ask("a b") ?? "", /^[0-9a-f]{24}$/);
  assert.match(await ask("x".repeat(129)) ?? "", /^[0-9a-f]{24}$/);
});
