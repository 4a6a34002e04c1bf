// On SQLite alone: the points at which it kills are commits to the file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findCrashFaults } from "../crash/faults.ts";
import { runCrashMatrix } from "../crash/matrix.ts";
import { KILL_POINTS } from "../crash/points.ts";
import { openRandom } from "../helpers/random.ts";

test("a server that is killed loses nothing and resends only what was in flight", async (t) => {
  const kills = 15; // at least one at each named point
  const figures = await runCrashMatrix({ kills, random: openRandom(t) });
  t.diagnostic(JSON.stringify(figures));
  assert.deepEqual(findCrashFaults(figures), []);
  const missed = Object.keys(KILL_POINTS).filter((name) => figures.kills[name] === undefined);
  assert.deepEqual(missed, []);
  assert.ok(figures.acknowledged > 100 && figures.refused > 0, "there was a load");
});
