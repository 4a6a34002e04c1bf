import { sha256 } from "../base/secret.ts";
import type { Database } from "../database/database.ts";
import { changesRow } from "../database/rows.ts";
import { sql } from "../database/sql.ts";

/**
 * Notes that an app has used an assertion; false where it had done so before (RFC 7523 §3). The
 * commit decides, so this holds over all processes and after a restart.
 */
export function useAssertion(
  database: Database,
  app: string,
  { jti, untilMs }: { readonly jti: string; readonly untilMs: number },
): Promise<boolean> {
  return changesRow(database, sql`INSERT INTO client_assertions (hash, untilMs)
    VALUES (${sha256(`${app} ${jti}`)}, ${Math.ceil(untilMs)}) ON CONFLICT DO NOTHING`);
}
