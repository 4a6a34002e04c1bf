import { type Database, UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { classifySqliteError } from "./sqlite_error.ts";
import { openSqlite, prepareOnce } from "./sqlite_file.ts";

/** Opens a connection that cannot write; its queries run on the calling thread. */
export function openSqliteReader(path: string): Pick<Database, "query"> & { close(): void } {
  const connection = openSqlite(path, { readOnly: true });
  const prepare = prepareOnce(connection);
  return {
    async query<Row>({ sql, params }: Sql) {
      try {
        return prepare(sql).all(...params) as Row[];
      } catch (cause) {
        const passing = !connection.isOpen || classifySqliteError(cause) === "unavailable";
        throw passing ? new UnavailableError("The database cannot be read", { cause }) : cause;
      }
    },
    close: () => connection.close(),
  };
}
