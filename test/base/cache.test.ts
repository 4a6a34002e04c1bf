import assert from "node:assert/strict";
import { test } from "node:test";
import { createCache } from "../../src/base/cache.ts";

test("a cache returns the value that was set last", () => {
  const cache = createCache<number>(4);
  assert.equal(cache.get("a"), undefined);
  cache.set("a", 1);
  cache.set("a", 2);
  assert.equal(cache.get("a"), 2);
});

test("a full cache keeps an entry that is used and evicts one that is not", () => {
  const cache = createCache<number>(10);
  cache.set("used", 1);
  cache.set("unused", 2);
  for (let index = 0; index < 100; index++) {
    cache.set(`new ${index}`, index);
    assert.equal(cache.get("used"), 1);
  }
  assert.equal(cache.get("unused"), undefined);
});

test("a cache never holds more entries than its limit", () => {
  const cache = createCache<number>(10);
  const keys = Array.from({ length: 1000 }, (_, index) => `key ${index}`);
  for (const key of keys) cache.set(key, 1);
  const held = keys.filter((key) => cache.get(key) !== undefined);
  assert.ok(held.length >= 5 && held.length <= 10, `${held.length}`);
});
