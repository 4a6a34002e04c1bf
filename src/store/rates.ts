import { parseRate, type Rate } from "../base/rate.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findValue, walk } from "../database/rows.ts";
import { sql } from "../database/sql.ts";

/** The rate limits of users and apps that have their own, in memory. */
export type Rates = Awaited<ReturnType<typeof loadRates>>;

/** How many rates are kept, about 10 MiB. The newest users beyond that have no own rate. */
const HELD_LIMIT = 50_000;
/** How many are read at once, so that other work can run in between. */
const READ_LIMIT = 2_000;

const rated = (after: string) =>
  sql`SELECT id AS key, rate FROM users WHERE rate IS NOT NULL AND id > ${after}
    UNION ALL SELECT id, rate FROM apps WHERE rate IS NOT NULL AND id > ${after}
    ORDER BY key ${limitTo(READ_LIMIT)}`;

export async function loadRates(database: Database) {
  let rates: ReadonlyMap<string, Rate | undefined> = new Map();
  let seen: number | undefined;

  /** Loads the rates again if any process has changed an app or user since the last call. */
  async function refresh(): Promise<void> {
    const select = sql`SELECT count FROM account_changes`;
    const changes = await findValue<number>(database, select);
    if (changes === seen) return;
    const read = new Map<string, Rate | undefined>();
    for await (const rows of walk<{ key: string; rate: string }>(database, "", rated)) {
      for (const { key, rate } of rows) read.set(key, parseRate(rate));
      if (read.size >= HELD_LIMIT) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    rates = read;
    seen = changes;
  }

  await refresh();
  /** The rate of a user or an app by id. */
  return { refresh, find: (id: string) => rates.get(id) };
}
