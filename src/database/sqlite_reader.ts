import { messageOf } from "../base/message_of.ts";
import { type Database, UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { refusalOf } from "./sqlite_error.ts";
import { createRowReader, openSqlite } from "./sqlite_file.ts";

/** Opens a connection that cannot write; its queries run on the calling thread. */
export function openSqliteReader(path: string): Pick<Database, "query"> & { close(): void } {
  const connection = openSqlite(path, { readOnly: true });
  const readRows = createRowReader(connection);
  return {
    async query<Row>(select: Sql) {
      try {
        return readRows<Row>(select);
      } catch (cause) {
        const passing = !connection.isOpen || refusalOf(cause) !== undefined;
        if (!passing) throw cause;
        throw new UnavailableError(`The database cannot be read: ${messageOf(cause)}`);
      }
    },
    close: () => connection.close(),
  };
}
