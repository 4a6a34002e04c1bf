import { createLookup } from "../base/cache.ts";
import type { App } from "../oauth/app.ts";
import { BUILT_IN_APPS, type Caller } from "../oauth/principal.ts";
import { type AppWithSecrets, findApp, findClient } from "./apps.ts";
import { type Database, UnavailableError } from "../database/database.ts";
import type { Revocations } from "./revocations.ts";
import { findUser } from "./users.ts";

/**
 * Apps and users as every token request needs them: in memory for as long as none changes, which is
 * seen as soon as a revocation is. What a request stores is checked again at its commit.
 */
export type Accounts = ReturnType<typeof createAccounts>;

const CACHE_LIMIT = 10_000;

/**
 * Makes the look-up, which goes by the number that every change of an app or a user raises; it
 * knows one app beside those that are stored.
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
     * What a token's user and app are called. Checks of tokens go on without the database: then
     * what is not known is left out, or told by its id.
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
    /** The number of changes that what is found now holds for. */
    changes: accountChanges,
    /** Whether there have been more, of other processes too: then accounts are read anew. */
    async hasChanged(since: number | undefined): Promise<boolean> {
      await refresh().catch(() => {}); // what is known stands
      return accountChanges() !== since;
    },
  };
}

function undefinedIfUnavailable(error: unknown): undefined {
  if (!(error instanceof UnavailableError)) throw error;
}
