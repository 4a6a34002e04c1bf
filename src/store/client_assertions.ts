import { sha256 } from "../base/secret.ts";
import type { Database } from "../database/database.ts";
import { changesRow } from "../database/rows.ts";
import { sql } from "../database/sql.ts";

/** Notes an assertion as used, whatever process does so; false where it has been (RFC 7523 §3). */
export function useAssertion(
  database: Database,
  app: string,
  { jti, untilMs }: { readonly jti: string; readonly untilMs: number },
): Promise<boolean> {
  return changesRow(database, sql`INSERT INTO client_assertions (hash, untilMs)
    VALUES (${sha256(`${app} ${jti}`)}, ${Math.ceil(untilMs)}) ON CONFLICT DO NOTHING`);
}
