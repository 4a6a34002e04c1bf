import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { createRqliteClock } from "../../src/database/rqlite_clock.ts";
import type { Log } from "../../src/base/log.ts";
import { listen } from "../helpers/listen.ts";

test("clocks that agree differ by at most 20 ms and cause no warning", async (t) => {
  const { clock, warnings } = await stage(t, [0, 0, 0]);
  await clock.look();
  assert.equal(clock.state(), "ok");
  assert.ok(clock.skewMs() <= 20, `${clock.skewMs()}`);
  assert.deepEqual(warnings, []);
});

test("a clock that is 400 ms ahead is ok and causes one warning", async (t) => {
  const { clock, warnings } = await stage(t, [-400, -400, -400]);
  await clock.look();
  await clock.look();
  assert.equal(clock.state(), "ok");
  assert.ok(clock.skewMs() > 300 && clock.skewMs() <= 400, `${clock.skewMs()}`);
  assert.equal(warnings.length, 1);
});

test("a clock that is 1.5 s behind is ok", async (t) => {
  const { clock } = await stage(t, [1_500, 1_500, 1_500]);
  await clock.look();
  assert.equal(clock.state(), "ok");
});

test("a clock that is 3 s behind is skewed after one look, and ok once it is set", async (t) => {
  const { clock, set } = await stage(t, [3_000, 3_000, 3_000]);
  await clock.look();
  assert.equal(clock.state(), "clock_skewed");
  set([0, 0, 0]);
  await clock.look();
  assert.equal(clock.state(), "ok");
});

test("start() resolves after the first look, even if one node is silent", async (t) => {
  const { clock } = await stage(t, [3_600_000, 3_600_000, NaN]);
  const stop = await clock.start();
  assert.equal(clock.state(), "clock_skewed");
  stop();
});

test("our clock is ok although one node has a wrong clock and another is down", async (t) => {
  const { clock, warnings } = await stage(t, [0, 60_000, 0], ["127.0.0.1:1"]);
  await clock.look();
  assert.equal(clock.state(), "ok");
  assert.deepEqual(warnings, []);
});

test("our clock is ok if it agrees with one of two nodes", async (t) => {
  const { clock } = await stage(t, [60_000, 0]);
  await clock.look();
  assert.equal(clock.state(), "ok");
});

test("our clock is skewed if two of three nodes agree on another time", async (t) => {
  const { clock } = await stage(t, [60_000, 0, 60_000]);
  await clock.look();
  assert.equal(clock.state(), "clock_skewed");
});

test("a clock that is wrong again after it was set causes another warning", async (t) => {
  const { clock, warnings, set } = await stage(t, [-400]);
  await clock.look();
  set([0]);
  await clock.look();
  assert.equal(warnings.length, 1);
  set([-400]);
  await clock.look();
  assert.equal(warnings.length, 2);
});

test("a node that restarts without foreign keys is logged once as an error", async (t) => {
  const keys: (0 | 1)[] = [1, 0];
  const { clock, errors, news, set } = await stage(t, [0, NaN], [], keys);
  const well = () => clock.nodes().map(([, isWell]) => isWell);
  for (let look = 0; look < 3; look++) await clock.look(); // the second node restarts
  set([0, 0]);
  for (let look = 0; look < 2; look++) await clock.look();
  assert.equal(errors.length, 1);
  assert.match(errors[0] ?? "", /ignores foreign keys: start it with -fk 127\.0\.0\.1:\d+$/);
  assert.deepEqual([news, well()], [[], [true, false]]);
  keys[1] = 1;
  await clock.look();
  assert.deepEqual([news, well()], [["a node of the database works again"], [true, true]]);
});

test("a node without foreign keys does not work from the first look on", async (t) => {
  const keys: (0 | 1)[] = [1, 0];
  const { clock, news } = await stage(t, [0, 0], [], keys);
  const well = () => clock.nodes().map(([, isWell]) => isWell);
  for (let look = 0; look < 2; look++) {
    await clock.look();
    assert.deepEqual(well(), [true, false]);
  }
  keys[1] = 1;
  await clock.look();
  assert.deepEqual([news, well()], [["a node of the database works again"], [true, true]]);
});

test("a node that is down for three looks is logged, and again when it responds", async (t) => {
  const { clock, warnings, news, set } = await stage(t, [0, NaN], ["127.0.0.1:1"]);
  const well = () => clock.nodes().map(([, isWell]) => isWell);
  for (let look = 0; look < 2; look++) await clock.look();
  assert.deepEqual([warnings, well()], [[], [true, true, true]]);
  for (let look = 0; look < 2; look++) await clock.look();
  assert.deepEqual(warnings, Array(2).fill("a node of the database does not answer"));
  assert.deepEqual(well(), [true, false, false]);
  set([0, 0]);
  for (let look = 0; look < 2; look++) await clock.look();
  assert.deepEqual(news, ["a node of the database works again"]);
  assert.deepEqual(well(), [true, true, false]);
});

test("a node that stores nothing while others do is logged, and again when it does", async (t) => {
  const { clock, warnings, news, stop } = await stage(t, [0, 0, 0]);
  stop([1]);
  for (let look = 0; look < 5; look++) await clock.look();
  const message = "a node of the database no longer stores what the others do";
  assert.deepEqual(warnings, [message]);
  stop([0, 1, 2]); // nobody leads
  for (let look = 0; look < 5; look++) await clock.look();
  stop([]);
  assert.deepEqual([warnings, news], [[message], []]);
  await clock.look();
  assert.deepEqual(news, ["a node of the database works again"]);
});

test("a node that refuses, or has no table, file or route, is logged with that", async (t) => {
  const { clock, reasons } = await stage(t, [0, -Infinity, Infinity, 1e300, -1e300]);
  for (let look = 0; look < 3; look++) await clock.look();
  assert.deepEqual(reasons, [
    "refuses GATEPOST_DATABASE_CREDENTIALS",
    "no such table: write_groups",
    "unable to open database file",
    'HTTP 502 {"error":"no route"}',
  ]);
});

/**
 * Nodes whose clocks are ahead of ours by these milliseconds (NaN: silent; -Infinity: refuses the
 * credentials; Infinity: has no tables; 1e300: has lost its file; -1e300: its proxy cannot reach
 * it), and other nodes that are down.
 */
async function stage(
  t: TestContext,
  aheadMs: readonly number[],
  down: readonly string[] = [],
  foreignKeys: readonly (0 | 1)[] = [],
) {
  let offsets = aheadMs;
  let stopped: readonly number[] = [];
  const groups = aheadMs.map(() => 0);
  const nodes = await Promise.all(aheadMs.map((_, index) => {
    const server = createServer((_request, response) => {
      const offset = offsets[index] ?? 0;
      const seconds = Math.abs(offset) === 1e300 ? offset : (Date.now() + offset) / 1_000;
      if (Number.isNaN(seconds)) return;
      if (seconds === -Infinity) return void response.writeHead(401).end();
      if (seconds === Infinity) {
        return void response.end('{"results":[{"error":"no such table: write_groups"}]}');
      }
      if (seconds === 1e300) {
        return void response.end('{"results":[],"error":"unable to open database file"}');
      }
      if (seconds === -1e300) return void response.writeHead(502).end('{"error":"no route"}');
      if (!stopped.includes(index)) groups[index] = (groups[index] ?? 0) + 1;
      const values = [[seconds, foreignKeys[index] ?? 1, groups[index]]];
      response.end(JSON.stringify({ results: [{ values }] }));
    });
    return listen(t, server);
  }));
  const client = createRqliteClient({
    nodes: [...nodes, ...down],
    isTls: false,
    credentials: undefined,
  });
  t.after(client.close);
  const news: string[] = [];
  const warnings: string[] = [];
  const reasons: string[] = [];
  const errors: string[] = [];
  const log: Log = {
    debug: assert.fail,
    info: (message) => void news.push(message),
    warn(message, fields) {
      warnings.push(message);
      if (fields?.["error"] instanceof Error) reasons.push(fields["error"].message);
    },
    error: (message, fields) => void errors.push(`${message} ${fields?.["node"]}`),
  };
  return {
    clock: createRqliteClock(client, log, Date.now),
    news,
    warnings,
    reasons,
    errors,
    set: (newMs: readonly number[]) => void (offsets = newMs),
    /** Makes only these nodes store nothing from now on. */
    stop: (indexes: readonly number[]) => void (stopped = indexes),
  };
}
