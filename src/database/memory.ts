import { DatabaseSync } from "node:sqlite";
import type { Database } from "./database.ts";
import { SCHEMA } from "./schema.ts";
import { createRowReader } from "./sqlite_file.ts";
import { createGroupWriter } from "./sqlite_writer.ts";
import { settle } from "./write_result.ts";

/** A database of one test: new, in memory, and gone when nobody holds it. */
export function createMemoryDatabase(): Database {
  const connection = new DatabaseSync(":memory:");
  connection.exec(SCHEMA);
  const readRows = createRowReader(connection);
  const writeGroup = createGroupWriter(connection, { areInPlace: () => true });
  return {
    query: async (select) => readRows(select),
    async write(batch) {
      const written = Promise.withResolvers<number[]>();
      settle(written, writeGroup([batch])[0]);
      return written.promise;
    },
    close: async () => connection.close(),
  };
}
