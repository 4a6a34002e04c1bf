import type { Caller } from "../oauth/principal.ts";
import type { Database } from "../database/database.ts";
import { writeAndPause } from "../database/rows.ts";
import { sql } from "../database/sql.ts";
import { BATCH } from "./batch.ts";

/** When tokens were used last. */
export type Uses = ReturnType<typeof createUses>;

/** So many grants are noted between two flushes, about 1 MB; the use of others is not. */
const NOTED_LIMIT = 10_000;

/** Makes the record of uses, which costs a request next to nothing; a crash loses a minute. */
export function createUses(database: Database, now: () => number) {
  let round = 1;
  let noted = new Map<string, number>();

  return {
    /** Notes that a token is used, once between two flushes: it remembers in which round. */
    note(token: { readonly caller: Caller; notedIn: number }): void {
      if (token.notedIn === round) return;
      token.notedIn = round;
      if (noted.size < NOTED_LIMIT) noted.set(token.caller.grantId, now());
    },
    /** Stores what has been noted since the last call, in batches for which nothing waits long. */
    async flush(): Promise<void> {
      const uses = [...noted];
      noted = new Map();
      round++;
      for (let at = 0; at < uses.length; at += BATCH) {
        const part = JSON.stringify(uses.slice(at, at + BATCH));
        await writeAndPause(database, [
          sql`UPDATE grants SET lastUsedAtMs = max(ifnull(lastUsedAtMs, 0), u.value ->> 1)
            FROM json_each(${part}) u WHERE grants.id = u.value ->> 0`,
        ], 1);
      }
    },
  };
}
