import assert from "node:assert/strict";
import { test } from "node:test";
import { testGuard } from "../../src/delivery/test_guard.ts";
import type { SelfTest } from "../../src/outbound/egress.ts";

/** Tests a guard that gives these results in turn. Returns what was found, warned of and slept. */
async function run(...results: SelfTest[]) {
  const warned: unknown[] = [];
  const slept: number[] = [];
  const found = await testGuard(
    { selfTest: async () => results.shift() ?? { ok: true } },
    { warn: (_message, fields) => void warned.push(fields) },
    async (ms) => void slept.push(ms),
  );
  return { found, warned, slept, left: results.length };
}

test("a guard that works or is broken is tested only once", async () => {
  const broken: SelfTest = { ok: false, reason: "no request reached the listener" };
  const refused: SelfTest = { ok: false, reason: "not reached", code: "ECONNREFUSED" };
  for (const found of [{ ok: true } as const, broken, refused]) {
    const others = { warned: [], slept: [], left: 1 };
    assert.deepEqual(await run(found, { ok: true }), { found, ...others });
  }
});

test("after a shortage of the process, or a timeout, the guard is tested again", async () => {
  for (const code of ["EMFILE", "TimeoutError", "UND_ERR_CONNECT_TIMEOUT"]) {
    const lacking: SelfTest = { ok: false, reason: "not reached", code };
    assert.deepEqual(await run(lacking, lacking, { ok: true }), {
      found: { ok: true },
      warned: [{ code }, { code }],
      slept: [5_000, 5_000],
      left: 0,
    });
  }
});
