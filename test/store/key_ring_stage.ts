import type { TestContext } from "node:test";
import type { SigningAlgorithm } from "../../src/base/jwt.ts";
import { createSeal } from "../../src/base/seal.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { type KeyRing, loadKeyRing } from "../../src/store/key_ring.ts";
import { openDatabase } from "../helpers/database.ts";

export const MINUTE_MS = 60_000;
export const TTL_MS = 60 * MINUTE_MS;
export const START_MS = Date.UTC(2040, 0, 1);

interface Stage {
  readonly database: Database;
  nowMs: number;
  /** The time of the clock that deletions go by, where it is another. */
  cautiousMs?: number;
  /** The key ring of a process, which makes the first key. */
  open(more?: {
    readonly alg?: SigningAlgorithm;
    readonly ttlMs?: number;
    readonly key?: Uint8Array;
    readonly keys?: readonly Uint8Array[];
    /** How far its clock is ahead. */
    readonly aheadMs?: number;
  }): Promise<KeyRing>;
}

/** A database without keys, and the clock of the processes on it. */
export function openStage(t: TestContext): Stage {
  const database = openDatabase(t);
  const stage: Stage = {
    database,
    nowMs: START_MS,
    open: ({ alg = "ES256", ttlMs = TTL_MS, key, keys = key ? [key] : [], aheadMs = 0 } = {}) =>
      loadKeyRing({
        database,
        seal: createSeal(...keys),
        alg,
        accessTokenTtlMs: ttlMs,
        now: () => stage.nowMs + aheadMs,
        cautiousNow: () => stage.cautiousMs ?? stage.nowMs,
      }),
  };
  return stage;
}

/** The ids of the keys that a ring publishes. */
export const kids = (ring: KeyRing) => ring.published().map(({ kid }) => kid);
export const storedKeys = (database: Database) =>
  database.query<{ kid: string; private: string }>(sql`SELECT kid, private FROM keys ORDER BY kid`);
