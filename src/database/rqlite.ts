import type { Database } from "./database.ts";
import type { RqliteClient } from "./rqlite_client.ts";
import { createRqliteReader } from "./rqlite_reader.ts";
import { createRqliteWriter } from "./rqlite_writer.ts";
import type { CommitReport } from "./write_result.ts";

/**
 * Opens the engine on an rqlite cluster, which replicates one SQLite database by Raft and answers
 * over HTTP. Its schema must be there (rqlite_engine.ts). Reads and writes go to the leader, so a
 * process sees what it has stored; what others stored it sees half a second later at most. The
 * client is closed with it.
 */
export function openRqliteDatabase(
  client: RqliteClient,
  observe: (commit: CommitReport) => void = () => {},
): Database {
  const writer = createRqliteWriter(client, observe);
  let closing: Promise<void> | undefined;
  return {
    query: createRqliteReader(client),
    write: writer.write,
    close: () => closing ??= writer.close().finally(client.close),
  };
}
