import { newSecret } from "../base/secret.ts";
import { type Seal, SealError } from "../base/seal.ts";
import { ConflictError, type Database, limitTo, UnusableDatabaseError } from "./database.ts";
import { findValue, walk } from "./rows.ts";
import { sql, type Sql } from "./sql.ts";

function findSetting(database: Database, name: string): Promise<string | undefined> {
  return findValue(database, sql`SELECT value FROM settings WHERE name = ${name}`);
}

/** The setting that only the key decrypts with which the database was sealed. */
export const SEAL_CHECK = "seal_check";

/** The setting that holds the key of the pages' form tokens. */
const PAGE_KEY = "page_key";

/** Where secrets are stored that a seal encrypted, with the row's id as their context. */
const PLACES = [
  { table: sql`settings`, id: sql`name`, column: sql`value`, only: sql`name = ${PAGE_KEY}` },
  { table: sql`keys`, id: sql`kid`, column: sql`private`, only: sql`TRUE` },
  { table: sql`subscriptions`, id: sql`id`, column: sql`secret`, only: sql`TRUE` },
  {
    table: sql`subscriptions`,
    id: sql`id`,
    column: sql`oldSecret`,
    only: sql`oldSecret NOT NULL`,
    isList: true,
  },
];
const BATCH = 500;

/**
 * Makes, in bounded batches, what encrypts every stored secret anew that the seal's first key did
 * not encrypt. One that is replaced meanwhile is left alone: whoever did that used the first key.
 */
async function* renewSecrets(database: Database, seal: Seal): AsyncGenerator<Sql[]> {
  for (const { table, id, column, only, isList } of PLACES) {
    const parts = walk<{ key: string; stored: string }>(database, "", (after) =>
      sql`SELECT ${id} AS key, ${column} AS stored FROM ${table}
        WHERE ${id} > ${after} AND ${only} ORDER BY ${id} ${limitTo(BATCH)}`);
    for await (const rows of parts) {
      yield rows.flatMap(({ key, stored }) => {
        const renewed = isList
          ? stored.split(" ").map((each) => seal.renew(each, key)).join(" ")
          : seal.renew(stored, key);
        return renewed === stored ? [] : sql`UPDATE ${table} SET ${column} = ${renewed}
          WHERE ${id} = ${key} AND ${column} = ${stored}`;
      });
    }
  }
}

/**
 * Makes sure that the seal decrypts what this database holds: a database that was sealed once needs
 * the same key for ever. Throws UnusableDatabaseError, and changes nothing, when it does not.
 *
 * @returns whether anything has been sealed just now: the log still holds it as it was
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

/** Why the seal does not fit a database with this stored secret; undefined if it does. */
export function findSealError(
  seal: Seal,
  stored: string,
  context = SEAL_CHECK,
): string | undefined {
  try {
    seal.decrypt(stored, context);
    return undefined;
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return `The database is sealed, and GATEPOST_SECRET_KEY is ${
      seal.active ? "not the key that it was sealed with" : "missing"
    }.`;
  }
}

/** Seals, in one batch, what was stored readable before there was a key; false if nothing was. */
async function sealDatabase(database: Database, seal: Seal): Promise<boolean> {
  if (!seal.active) return false;
  const renewals = (await Array.fromAsync(renewSecrets(database, seal))).flat();
  await database.write([
    sql`INSERT INTO settings (name, value) VALUES (${SEAL_CHECK}, ${seal.encrypt("", SEAL_CHECK)})`,
    ...renewals,
  ]);
  return renewals.length > 0;
}

/**
 * Encrypts with the seal's first key what an older one did, in batches. What says which key the
 * database needs comes last, with `beside`: if this ends early, every key is still needed, and the
 * next call continues. Returns the number of secrets; throws the reason of `signal`.
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
    const changes = await database.write(batch);
    count += changes.reduce((sum, changed) => sum + changed, 0);
  }
  const check = seal.encrypt("", SEAL_CHECK);
  await database.write([
    sql`UPDATE settings SET value = ${check} WHERE name = ${SEAL_CHECK}`,
    beside,
  ]);
  return count;
}

/** The key of the pages' form tokens, the same for every process: the first one stores it. */
export async function loadPageKey(database: Database, seal: Seal): Promise<Uint8Array> {
  if (await findSetting(database, PAGE_KEY) === undefined) {
    const insert = sql`INSERT INTO settings (name, value) VALUES (${PAGE_KEY},
      ${seal.encrypt(newSecret(), PAGE_KEY)}) ON CONFLICT DO NOTHING`;
    await database.write([insert]);
  }
  const stored = await findSetting(database, PAGE_KEY) ?? "";
  return Buffer.from(seal.decrypt(stored, PAGE_KEY), "base64url");
}
