import { findCrashFaults } from "../crash/faults.ts";
import type { Row } from "./rows.ts";
import type { TrialFigures } from "./trial.ts";

/** The longest that a lost leader may hold up writes. */
const FAILOVER_MS = 1_500;
const REVOCATION_MS = 1_000;
/** Allowed failures: 503, 409 while a request with the key runs, no response by a killed node. */
const EXPECTED = /^(503|409|no response)/;

/** The promises that a fault has broken, a line each. */
export function findBrokenPromises(row: Row, figures: TrialFigures): string[] {
  const { chains, gapMs, gets, revokedMs, differing, failures } = figures;
  const broken = findCrashFaults(figures);
  const check = (holds: boolean, what: string) => holds || broken.push(what);
  const limitMs = FAILOVER_MS + (row.outageMs ?? 0);
  const slowestMs = Math.max(0, ...revokedMs);
  check(chains.broken === 0, `${chains.broken} chains of refresh tokens`);
  check(gapMs <= limitMs, `no write for ${Math.round(gapMs)} ms`);
  check(gets.failed === 0, `${gets.failed} protected GETs failed`);
  check(slowestMs <= REVOCATION_MS, `a revoked token was good for ${Math.round(slowestMs)} ms`);
  check(differing.length === 0, `replicas differ in ${differing.join(", ")}`);
  for (const [failure, count] of failures) {
    check(EXPECTED.test(failure), `${count} times ${failure}`);
  }
  return broken;
}
