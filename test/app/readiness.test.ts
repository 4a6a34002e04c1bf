import assert from "node:assert/strict";
import { test } from "node:test";
import { createReadiness } from "../../src/app/readiness.ts";

const BACKLOG = { events: 0, deliveries: 0, oldestMs: undefined, overdueSinceMs: undefined };

test("the service is ready while every part is, and each part says how it does", async () => {
  let callbacks = "ok";
  const judge = createReadiness({
    database: () => Promise.resolve("ok"),
    distributor: () => "off",
    callbacks: () => callbacks,
  }, () => Promise.resolve(BACKLOG), () => 1_000);
  assert.equal((await judge(false)).isReady, true);
  callbacks = "EMFILE";
  const { isReady, parts } = await judge(true);
  assert.equal(isReady, false);
  assert.equal(parts["callbacks"], "EMFILE");
  assert.deepEqual(await judge(false), { isReady: false, parts: {} });
});
