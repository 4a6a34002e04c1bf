import { createCache } from "../base/cache.ts";
import { findApp } from "./apps.ts";
import type { Database } from "../database/database.ts";
import { findValue } from "../database/rows.ts";
import { sql } from "../database/sql.ts";
import { findUser } from "./users.ts";

/** Apps and users as every token request needs them: kept in memory for as long as none changes. */
export type Accounts = ReturnType<typeof createAccounts>;

const CACHE_LIMIT = 10_000;

/** The number of all changes of apps and users so far, and of new ones with a rate. */
export const ACCOUNT_CHANGES = sql`SELECT count FROM account_changes`;

/** Makes the look-up. It reads a single number, which every change of an app or a user raises. */
export function createAccounts(database: Database) {
  return { findApp: remember(database, findApp), findUser: remember(database, findUser) };
}

function remember<Account>(
  database: Database,
  find: (database: Database, id: string) => Promise<Account | undefined>,
): (id: string) => Promise<Account | undefined> {
  let cache = createCache<Account>(CACHE_LIMIT);
  let seen: number | undefined;
  return async (id) => {
    const changes = await findValue<number>(database, ACCOUNT_CHANGES);
    if (changes === undefined || changes !== seen) cache = createCache(CACHE_LIMIT);
    seen = changes;
    const current = cache; // what is read now is not kept past a change that is noticed meanwhile
    const known = current.get(id);
    if (known) return known;
    const account = await find(database, id);
    if (account) current.set(id, account);
    return account;
  };
}
