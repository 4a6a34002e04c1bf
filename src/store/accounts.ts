import { createLookup } from "../base/cache.ts";
import type { App } from "../oauth/app.ts";
import { BUILT_IN_APPS, type Caller } from "../oauth/principal.ts";
import { type AppWithSecrets, findApp, findClient } from "./apps.ts";
import { type Database, UnavailableError } from "../database/database.ts";
import type { Revocations } from "./revocations.ts";
import { findUser } from "./users.ts";

/**
 * Apps and users for token requests: in memory until any app or user changes, which is noticed as
 * soon as a revocation is. What a request stores is checked again at its commit.
 */
export type Accounts = ReturnType<typeof createAccounts>;

const CACHE_LIMIT = 10_000;

/**
 * Makes the cache, which is emptied when the counter of changes of apps and users has risen.
 * `builtIn` is an app that is not stored.
 */
export function createAccounts(
  database: Database,
  { accountChanges, refresh }: Revocations,
  builtIn?: App,
) {
  const findStored = createLookup(CACHE_LIMIT, accountChanges, (id: string) =>
    findClient(database, id));
  const findById = createLookup(CACHE_LIMIT, accountChanges, (id: string) =>
    findApp(database, id));
  const findUserById = createLookup(CACHE_LIMIT, accountChanges, (id: string) =>
    findUser(database, id));
  return {
    findClient: async (clientId: string): Promise<AppWithSecrets | undefined> =>
      clientId === builtIn?.id ? builtIn : findStored(clientId),
    findUser: findUserById,
    /**
     * Returns the username and `client_id` of a token. Works without the database too: then an
     * unknown username is left out, and an unknown app is named by its id.
     */
    async nameHolder(
      { sub, kind, clientId }: Pick<Caller, "sub" | "kind" | "clientId">,
    ): Promise<{ readonly username?: string; readonly client_id: string }> {
      if (kind !== "user") return { client_id: clientId };
      const isBuiltIn = BUILT_IN_APPS.some((id) => id === clientId);
      const [user, app] = await Promise.all([
        findUserById(sub).catch(undefinedIfUnavailable),
        isBuiltIn ? undefined : findById(clientId).catch(undefinedIfUnavailable),
      ]);
      const client_id = app?.metadataUrl ?? clientId;
      return user ? { username: user.username, client_id } : { client_id };
    },
    /** The number of account changes at the last refresh. */
    changes: accountChanges,
    /** Whether any process has made more changes since then; if so, accounts are read again. */
    async hasChanged(since: number | undefined): Promise<boolean> {
      await refresh().catch(() => {}); // without a database the cache stays
      return accountChanges() !== since;
    },
  };
}

function undefinedIfUnavailable(error: unknown): undefined {
  if (!(error instanceof UnavailableError)) throw error;
}
