import type { Database } from "./database.ts";
import { createRqliteClient, type RqliteAddress, type RqliteClient } from "./rqlite_client.ts";
import { createRqliteClock } from "./rqlite_clock.ts";
import { acquireRqlitePresence } from "./rqlite_presence.ts";
import { createRqliteReader } from "./rqlite_reader.ts";
import { createRqliteWriter } from "./rqlite_writer.ts";
import type { CommitReport } from "./write_result.ts";

/**
 * Opens an rqlite cluster, which replicates one SQLite database by Raft and answers over HTTP. Its
 * schema must exist (rqlite_engine.ts). Reads and writes go to the leader, so a process sees its
 * own writes at once, and writes of other processes half a second later at most. Closing the
 * database closes the client.
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

/** Implements `openInThread` for a cluster. */
export async function openRqliteInThread(cluster: RqliteAddress, name: string) {
  const client = createRqliteClient(cluster);
  const database = openRqliteDatabase(client);
  // Without a log: the server's own check logs the same.
  const clockCheck = createRqliteClock(client, undefined, Date.now);
  return { database, presence: await acquireRqlitePresence(database, name), clockCheck };
}
