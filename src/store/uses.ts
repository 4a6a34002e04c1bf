import type { Caller } from "../oauth/principal.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";

/** How many grants are noted between two flushes, about 500 KB; uses of others are lost. */
const NOTED_LIMIT = 5_000;

/** Makes the record of uses, at next to no cost for a request; a crash loses a minute of uses. */
export function createUses(database: Database, now: () => number) {
  let round = 1;
  let noted = new Map<string, number>();

  return {
    /** Notes that a token is used, once between two flushes: `notedIn` has the round. */
    note(token: { readonly caller: Caller; notedIn: number }): void {
      if (token.notedIn === round) return;
      token.notedIn = round;
      if (noted.size < NOTED_LIMIT) noted.set(token.caller.grantId, now());
    },
    /** Stores what has been noted since the last call, as one batch. */
    async flush(): Promise<void> {
      const sent = noted;
      noted = new Map();
      round++;
      if (sent.size === 0) return;
      await database.write([
        sql`UPDATE grants SET lastUsedAtMs = max(ifnull(lastUsedAtMs, 0), u.value ->> 1)
          FROM json_each(${JSON.stringify([...sent])}) u WHERE grants.id = u.value ->> 0`,
      ]).catch((error: unknown) => {
        // Storing a use twice changes nothing.
        noted = new Map([...sent, ...noted].slice(0, NOTED_LIMIT));
        throw error;
      });
    },
  };
}
