import type { Database } from "./database.ts";
import { createRqliteClient, type RqliteAddress, type RqliteClient } from "./rqlite_client.ts";
import { createRqliteClock } from "./rqlite_clock.ts";
import { acquireRqlitePresence } from "./rqlite_presence.ts";
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

/** Does `openInThread` of a cluster. */
export async function openRqliteInThread(cluster: RqliteAddress, name: string) {
  const client = createRqliteClient(cluster);
  const database = openRqliteDatabase(client);
  // What is to be logged is logged by the same check in the server.
  const clockCheck = createRqliteClock(client, undefined, Date.now);
  return { database, presence: await acquireRqlitePresence(database, name), clockCheck };
}
