import { sha256 } from "../base/secret.ts";
import type { Database } from "../database/database.ts";
import { changesRow } from "../database/rows.ts";
import { sql } from "../database/sql.ts";

/** Marks an assertion as used, for all processes. False if it was used before (RFC 7523 §3). */
export function useAssertion(
  database: Database,
  app: string,
  { jti, untilMs }: { readonly jti: string; readonly untilMs: number },
): Promise<boolean> {
  return changesRow(database, sql`INSERT INTO client_assertions (hash, untilMs)
    VALUES (${sha256(`${app} ${jti}`)}, ${Math.ceil(untilMs)}) ON CONFLICT DO NOTHING`);
}
