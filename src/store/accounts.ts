import { createCache } from "../base/cache.ts";
import type { User } from "../oauth/user.ts";
import { type AppWithSecrets, findApp } from "./apps.ts";
import type { Database } from "./database.ts";
import { findUser } from "./users.ts";

/**
 * Apps and users as nearly every token request needs them, in memory. What is decided by them is
 * decided again in SQL when it is stored, so one that another process has changed a moment ago
 * gets nothing that lasts.
 */
export interface Accounts {
  findApp(id: string): Promise<AppWithSecrets | undefined>;
  findUser(id: string): Promise<User | undefined>;
  /** Forgets all; call it after each own change, and often enough for the changes of others. */
  forget(): void;
}

const CACHE_LIMIT = 10_000;

/** Makes the look-up of accounts; what is not there is looked for each time. */
export function createAccounts(database: Database): Accounts {
  let apps = createCache<AppWithSecrets>(CACHE_LIMIT);
  let users = createCache<User>(CACHE_LIMIT);

  return {
    async findApp(id) {
      const known = apps.get(id);
      if (known) return known;
      const app = await findApp(database, id);
      if (app) apps.set(id, app);
      return app;
    },
    async findUser(id) {
      const known = users.get(id);
      if (known) return known;
      const user = await findUser(database, id);
      if (user) users.set(id, user);
      return user;
    },
    forget() {
      apps = createCache(CACHE_LIMIT);
      users = createCache(CACHE_LIMIT);
    },
  };
}
