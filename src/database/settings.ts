import { newSecret } from "../base/secret.ts";
import { type Seal, SealError } from "../base/seal.ts";
import { ConflictError, type Database, limitTo, UnusableDatabaseError } from "./database.ts";
import { findValue, walk } from "./rows.ts";
import { sql, type Sql } from "./sql.ts";

function findSetting(database: Database, name: string): Promise<string | undefined> {
  return findValue(database, sql`SELECT value FROM settings WHERE name = ${name}`);
}

/** The setting that decrypts only with the key that the database is sealed with. */
export const SEAL_CHECK = "seal_check";

/** The setting that holds the key of the pages' form tokens. */
const PAGE_KEY = "page_key";

/** The columns with secrets that the seal encrypts, with the row's id as context. */
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
 * Yields bounded batches that re-encrypt every stored secret that the seal's first key did not
 * encrypt. A secret that is replaced meanwhile stays as it is: its writer used the first key.
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
 * Checks that the seal decrypts the stored secrets, or encrypts those of a database without a seal.
 * Throws UnusableDatabaseError, and changes nothing, if the key is wrong or missing.
 *
 * @returns whether secrets have just been encrypted: the log still has them in plain text
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

/** Returns why the seal cannot decrypt this stored secret; undefined if it can. */
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

/** Encrypts, in one batch, the secrets stored before there was a key. False if none were. */
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
 * Re-encrypts, in batches and with the seal's first key, what older keys encrypted. Writes
 * `SEAL_CHECK` last, with `beside`: if this ends early, every key is still needed, and the next
 * call continues. Returns the number of secrets; throws the signal's reason.
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

/** Loads the key of the pages' form tokens. The first process makes it; all processes share it. */
export async function loadPageKey(database: Database, seal: Seal): Promise<Uint8Array> {
  if (await findSetting(database, PAGE_KEY) === undefined) {
    const insert = sql`INSERT INTO settings (name, value) VALUES (${PAGE_KEY},
      ${seal.encrypt(newSecret(), PAGE_KEY)}) ON CONFLICT DO NOTHING`;
    await database.write([insert]);
  }
  const stored = await findSetting(database, PAGE_KEY) ?? "";
  return Buffer.from(seal.decrypt(stored, PAGE_KEY), "base64url");
}
