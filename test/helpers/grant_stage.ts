import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { sha256 } from "../../src/base/secret.ts";
import type { Database } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import {
  findGrant,
  findRefreshToken,
  insertGrant,
  type NewGrant,
  rotateRefreshToken,
} from "../../src/store/grants.ts";
import { addApp, addUser, openWithOthers, sampleGrant } from "./database.ts";
import { numbers } from "./numbers.ts";

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

type Grants = Readonly<Record<string, NewGrant>>;

/** Stores grants, which must be valid. */
export async function addGrants(database: Database, grants: Grants): Promise<void> {
  for (const grant of Object.values(grants)) assert.ok(await insertGrant(database, grant));
}

/** The names of the grants that are revoked. */
export async function listRevoked(database: Database, grants: Grants): Promise<string[]> {
  const names: string[] = [];
  for (const [name, { id }] of Object.entries(grants)) {
    if ((await findGrant(database, id))?.revokedAtMs !== null) names.push(name);
  }
  return names;
}

/** Stores 1,201 valid grants of as many users. */
export async function addMany(
  database: Database,
  app: string,
  scope: string,
  from = "g",
): Promise<void> {
  await database.write([sql`INSERT INTO grants
     (id, app, user, type, scopes, refreshUntilMs, accessUntilMs) ${numbers(1201)}
     SELECT ${from} || printf('%06d', i), ${app}, 'u' || i, 'any', ${JSON.stringify([scope])}, 0,
       ${NOW_MS + HOUR_MS} FROM n`]);
}

export async function countValid(database: Database): Promise<number> {
  return (await database.query(sql`SELECT 1 FROM grants WHERE revokedAtMs IS NULL`)).length;
}

/** A statement that stores a code. */
export function putCode(id: string, app: string, user: string, scopes = ["consumer"]): Sql {
  return sql`INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
    VALUES (${id}, x'00', ${app}, ${user}, ${JSON.stringify(scopes)}, '', 1)`;
}

export async function listCodes(database: Database): Promise<string[]> {
  const rows = await database.query<{ id: string }>(sql`SELECT id FROM codes ORDER BY id`);
  return rows.map(({ id }) => id);
}

/** The caller with an access token of a grant. */
export function callerOf({ id, app, user }: Pick<NewGrant, "id" | "app" | "user">) {
  return { jti: `${id}0123456789abcdef`, grantId: id, sub: user ?? app, clientId: app };
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
