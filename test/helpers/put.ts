import { sql } from "../../src/database/sql.ts";

/** A statement that stores a setting, the simplest row for a test of the database. */
export function put(name: string, value = "1") {
  return sql`INSERT INTO settings (name, value) VALUES (${name}, ${value})`;
}
