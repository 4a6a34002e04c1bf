import { newSecret } from "../base/secret.ts";
import { type Seal, SealError } from "../base/seal.ts";
import { ConflictError, type Database, UnusableDatabaseError } from "./database.ts";
import { sql, type Sql } from "./sql.ts";
import { PAGE_KEY, renewSecrets } from "./sealed_secrets.ts";

interface Setting {
  value: string;
}

async function findSetting(database: Database, name: string): Promise<string | undefined> {
  const rows = await database.query<Setting>(sql`SELECT value FROM settings WHERE name = ${name}`);
  return rows[0]?.value;
}

/** The stored value of a setting; the first process to ask stores what `make` gives. */
async function ensureSetting(
  database: Database,
  name: string,
  make: () => string,
): Promise<string> {
  const found = await findSetting(database, name);
  if (found !== undefined) return found;
  await database.write([
    sql`INSERT INTO settings (name, value) VALUES (${name}, ${make()}) ON CONFLICT DO NOTHING`,
  ]);
  return await findSetting(database, name) ?? make();
}

/** The setting that only the key decrypts with which the database was sealed. */
export const SEAL_CHECK = "seal_check";

/**
 * Makes sure that the seal decrypts what this database holds: a database that was sealed once needs
 * the same key for ever. Throws UnusableDatabaseError, and changes nothing, when it does not.
 *
 * @returns whether it has been sealed just now: its log still holds what was readable
 */
export async function checkSeal(database: Database, seal: Seal): Promise<boolean> {
  const stored = await findSetting(database, SEAL_CHECK);
  if (stored === undefined) {
    try {
      return await sealDatabase(database, seal);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      return checkSeal(database, seal); // another process was faster
    }
  }
  const error = findSealError(seal, stored);
  if (error !== undefined) throw new UnusableDatabaseError(error);
  return false;
}

/**
 * Why the seal does not fit a database with this stored check, in one line; undefined if it does.
 */
export function findSealError(seal: Seal, stored: string): string | undefined {
  try {
    seal.decrypt(stored, SEAL_CHECK);
    return undefined;
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return seal.active
      ? "The database is sealed, and GATEPOST_SECRET_KEY is not the key that it was sealed with."
      : "The database is sealed, and GATEPOST_SECRET_KEY is missing.";
  }
}

/** Seals, in one batch, what was stored readable before there was a key; false without one. */
async function sealDatabase(database: Database, seal: Seal): Promise<boolean> {
  if (!seal.active) return false;
  const renewals = (await Array.fromAsync(renewSecrets(database, seal))).flat();
  await database.write([
    sql`INSERT INTO settings (name, value) VALUES (${SEAL_CHECK}, ${seal.encrypt("", SEAL_CHECK)})`,
    ...renewals,
  ]);
  return true;
}

/**
 * Encrypts with the seal's first key what an older one did, in batches between which others write
 * as long as a batch took. What says which key the database needs comes last, with `beside`:
 * wherever this ends early every key is still needed, and it goes on the next time. Returns the
 * number of secrets; throws the reason of `signal`.
 */
export async function resealDatabase(
  database: Database,
  seal: Seal,
  beside: Sql,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for await (const batch of renewSecrets(database, seal)) {
    signal.throwIfAborted();
    if (batch.length === 0) continue;
    const beganMs = performance.now();
    count += (await database.write(batch)).reduce((sum, changes) => sum + changes, 0);
    const tookMs = performance.now() - beganMs;
    await new Promise((resolve) => setTimeout(resolve, tookMs));
  }
  const check = seal.encrypt("", SEAL_CHECK);
  await database.write([
    sql`UPDATE settings SET value = ${check} WHERE name = ${SEAL_CHECK}`,
    beside,
  ]);
  return count;
}

/** The key that the pages' form tokens are made with, the same for every process and start. */
export async function loadPageKey(database: Database, seal: Seal): Promise<Uint8Array> {
  const stored = await ensureSetting(database, PAGE_KEY, () => seal.encrypt(newSecret(), PAGE_KEY));
  return Buffer.from(seal.decrypt(stored, PAGE_KEY), "base64url");
}
