import { sql, type Sql } from "../../src/database/sql.ts";

/** What a statement begins with that makes many rows: `n`, a table of each `i` from 1 to `last`. */
export function numbers(last: number): Sql {
  return sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${last})`;
}
