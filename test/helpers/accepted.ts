import assert from "node:assert/strict";
import type { TestContext } from "node:test";

/** Asserts that of so many runs more than `least` accept their input, but not all. */
export function checkAccepted(
  t: TestContext,
  { runs, least }: { readonly runs: number; readonly least: number },
  run: () => boolean,
): void {
  let accepted = 0;
  for (let count = 0; count < runs; count++) if (run()) accepted++;
  t.diagnostic(`${accepted} of ${runs} accepted`);
  assert.ok(accepted > least && accepted < runs);
}
