import { createCache } from "../base/cache.ts";
import type { User } from "../oauth/user.ts";
import { type AppWithSecrets, findApp } from "./apps.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { findUser } from "./users.ts";

/** Apps and users as every token request needs them: kept in memory for as long as none changes. */
export interface Accounts {
  findApp(id: string): Promise<AppWithSecrets | undefined>;
  findUser(id: string): Promise<User | undefined>;
}

const CACHE_LIMIT = 10_000;

/**
 * Makes the look-up of accounts. Each one asks for a single number, which the database raises with
 * every change of an app or a user, whichever process makes it.
 */
export function createAccounts(database: Database): Accounts {
  let apps = createCache<AppWithSecrets>(CACHE_LIMIT);
  let users = createCache<User>(CACHE_LIMIT);
  let seen: number | undefined;

  async function forgetIfChanged(): Promise<void> {
    const [row] = await database.query<{ count: number }>(sql`SELECT count FROM account_changes`);
    if (row !== undefined && row.count === seen) return;
    seen = row?.count;
    apps = createCache(CACHE_LIMIT);
    users = createCache(CACHE_LIMIT);
  }

  return {
    async findApp(id) {
      await forgetIfChanged();
      const cache = apps; // what is read now is not kept past a change that another look-up notices
      const known = cache.get(id);
      if (known) return known;
      const app = await findApp(database, id);
      if (app) cache.set(id, app);
      return app;
    },
    async findUser(id) {
      await forgetIfChanged();
      const cache = users;
      const known = cache.get(id);
      if (known) return known;
      const user = await findUser(database, id);
      if (user) cache.set(id, user);
      return user;
    },
  };
}
