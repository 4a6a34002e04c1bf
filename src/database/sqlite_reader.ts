import type { StatementSync } from "node:sqlite";
import { type Database, UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { classifySqliteError } from "./sqlite_error.ts";
import { openSqlite } from "./sqlite_file.ts";

/** The reading half of a database. */
export interface SqliteReader extends Pick<Database, "query"> {
  close(): void;
}

/** Opens a connection that cannot write; its queries run on the calling thread. */
export function openSqliteReader(path: string): SqliteReader {
  const connection = openSqlite(path, { readOnly: true });
  const prepared = new Map<string, StatementSync>();
  return {
    query: <Row>({ sql, params }: Sql) =>
      new Promise<Row[]>((resolve, reject) => {
        let statement = prepared.get(sql);
        try {
          if (!statement) prepared.set(sql, statement = connection.prepare(sql));
          resolve(statement.all(...params) as Row[]);
        } catch (cause) {
          const passing = !connection.isOpen || classifySqliteError(cause) === "unavailable";
          reject(passing ? new UnavailableError("The database cannot be read", { cause }) : cause);
        }
      }),
    close: () => connection.close(),
  };
}
