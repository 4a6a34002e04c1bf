import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { sha256 } from "../../src/base/secret.ts";
import type { Database } from "../../src/database/database.ts";
import {
  findRefreshToken,
  insertGrant,
  type NewGrant,
  rotateRefreshToken,
} from "../../src/store/grants.ts";
import { addApp, addUser, openWithOthers, sampleGrant } from "./database.ts";

export const NOW_MS = Date.UTC(2026, 0, 1);
export const HOUR_MS = 3_600_000;
/** Hashes of the refresh token of a sample grant, and of the next one. */
export const [FIRST, SECOND] = [sha256("first"), sha256("second")];

/** A database with a grant, beside a user and an app that it is not of. */
export async function openWithGrant(t: TestContext, more: Partial<NewGrant> = {}) {
  const database = await openWithOthers(t);
  const grant = sampleGrant(await addApp(database), await addUser(database), more);
  assert.equal(await insertGrant(database, grant), true);
  return { database, grant };
}

interface Presenting {
  readonly state?: "current" | "previous";
  readonly isGenuine?: boolean;
  readonly nowMs?: number;
}

/** Finds a refresh token by its hash. */
export function find(
  database: Database,
  grantId: string,
  hash: Uint8Array,
  { isGenuine = false, nowMs = NOW_MS + 5 }: Presenting = {},
) {
  return findRefreshToken(database, handleOf(grantId, hash, isGenuine), nowMs);
}

function handleOf(grantId: string, hash: Uint8Array, isGenuine: boolean) {
  return { grantId, hash, isGenuine: isGenuine ? () => true : undefined };
}

/** Exchanges a refresh token for one that is valid for 30 hours. */
export async function rotate(
  database: Database,
  grantId: string,
  oldHash: Uint8Array,
  newHash: Uint8Array,
  { state = "current", isGenuine = false, nowMs = NOW_MS + 5 }: Presenting = {},
): Promise<boolean> {
  const found = await find(database, grantId, oldHash, { isGenuine: true, nowMs });
  return rotateRefreshToken(database, {
    old: handleOf(grantId, oldHash, isGenuine),
    state,
    head: found?.head ?? null,
    newHash,
    scopes: ["consumer"],
    refreshUntilMs: NOW_MS + 30 * HOUR_MS,
    accessUntilMs: NOW_MS + 2 * HOUR_MS,
  }, nowMs);
}
