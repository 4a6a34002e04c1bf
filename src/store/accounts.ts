import { createCache } from "../base/cache.ts";
import type { App } from "../oauth/app.ts";
import { type AppWithSecrets, findClient } from "./apps.ts";
import type { Database } from "../database/database.ts";
import type { Revocations } from "./revocations.ts";
import { findUser } from "./users.ts";

/**
 * Apps and users as every token request needs them: in memory for as long as none changes, which is
 * seen as soon as a revocation is. What a request stores is checked again at its commit.
 */
export type Accounts = ReturnType<typeof createAccounts>;

const CACHE_LIMIT = 10_000;
const NO_SECRETS = { secret: null, oldSecret: null, oldSecretUntilMs: null };

/**
 * Makes the look-up, which goes by the number that every change of an app or a user raises; it
 * knows one app beside those that are stored.
 */
export function createAccounts(
  database: Database,
  { accountChanges, refresh }: Revocations,
  builtIn?: App,
) {
  function remember<Account>(
    find: (database: Database, id: string) => Promise<Account | undefined>,
  ): (id: string) => Promise<Account | undefined> {
    let cache = createCache<Account>(CACHE_LIMIT);
    let seen: number | undefined;
    return async (id) => {
      const changes = accountChanges();
      if (changes !== seen) cache = createCache(CACHE_LIMIT);
      seen = changes;
      const current = cache; // what is read now is not kept past a change that is noticed meanwhile
      const known = current.get(id);
      if (known) return known;
      const account = await find(database, id);
      if (account) current.set(id, account);
      return account;
    };
  }
  const findStored = remember(findClient);
  return {
    findClient: async (clientId: string): Promise<AppWithSecrets | undefined> =>
      clientId === builtIn?.id ? { ...builtIn, ...NO_SECRETS } : findStored(clientId),
    findUser: remember(findUser),
    /** The number of changes that what is found now holds for. */
    changes: accountChanges,
    /** Whether there have been more, of other processes too: then accounts are read anew. */
    async hasChanged(since: number | undefined): Promise<boolean> {
      await refresh().catch(() => {}); // what is known stands
      return accountChanges() !== since;
    },
  };
}
