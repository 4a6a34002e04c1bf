import { type Database, limitTo } from "../database/database.ts";
import { changesRow, findItem, parseScopes, type RowOf } from "../database/rows.ts";
import { andIs, sql } from "../database/sql.ts";
import { insertAudit, type NewAuditEntry } from "./audit.ts";
import { type Code, hasCode, insertCode } from "./codes.ts";

/** A device that waits, or has waited, for a user's decision (RFC 8628 §3.1). */
export interface DeviceCode extends Pick<Code, "app" | "scopes" | "untilMs"> {
  /** SHA-256 of the device code. */
  readonly hash: Uint8Array;
  /** `DENIED`, the id of the code that the device gets, or null: nobody has decided. */
  readonly decision: string | null;
}

export const DENIED = "denied";

/** How many devices wait at most, of one app and in all: some apps can ask without a secret. */
const MAX_OF_APP = 5_000;
const MAX_ALL = 10_000;

/** Stores a device code, with its user code by SHA-256; false where too many devices wait. */
export function insertDeviceCode(
  database: Database,
  { hash, app, scopes, untilMs }: Omit<DeviceCode, "decision">,
  userCode: Uint8Array,
  nowMs: number,
): Promise<boolean> {
  const fewer = (most: number, ofApp = sql``) => sql`NOT EXISTS (SELECT 1 FROM device_codes
    WHERE untilMs > ${nowMs}${ofApp} ${limitTo(1)} OFFSET ${most - 1})`;
  // If another device has this user code, as rare as a correct guess, the app asks again.
  return changesRow(database, sql`INSERT INTO device_codes (hash, userCode, app, scopes, untilMs)
    SELECT ${hash}, ${userCode}, ${app}, ${JSON.stringify(scopes)}, ${untilMs}
    WHERE ${fewer(MAX_ALL)} AND ${fewer(MAX_OF_APP, andIs(sql`app`, app))} ON CONFLICT DO NOTHING`);
}

/** Finds a device code by its hash or its user code's, also for some time after its end. */
export function findDeviceCode(database: Database, by: "hash" | "userCode", hash: Uint8Array) {
  const select = sql`SELECT hash, app, scopes, decision, untilMs FROM device_codes
    WHERE ${by === "hash" ? sql`hash` : sql`userCode`} = ${hash}`;
  return findItem(database, select, parseScopes<RowOf<DeviceCode>>);
}

/**
 * Stores a user's decision on a device, and its audit entry; without a code it is a denial. False
 * if the device no longer waits, or `insertCode` stores nothing for the browser session.
 */
export async function decideDeviceCode(
  database: Database,
  hash: Uint8Array,
  code: Code | undefined,
  session: Uint8Array,
  audited: NewAuditEntry,
  nowMs: number,
): Promise<boolean> {
  const waits = sql`hash = ${hash} AND decision IS NULL AND untilMs > ${nowMs}`;
  const isWaiting = sql`EXISTS (SELECT 1 FROM device_codes WHERE ${waits})`;
  const when = code ? hasCode(code.id) : isWaiting;
  const changes = await database.write([
    ...code ? [insertCode(code, hash, session, nowMs, isWaiting)] : [],
    insertAudit(audited, nowMs, when),
    sql`UPDATE device_codes SET decision = ${code?.id ?? DENIED} WHERE ${waits} AND ${when}`,
  ]);
  return changes.at(-1) === 1;
}
