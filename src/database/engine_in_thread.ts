import type { MessagePort } from "node:worker_threads";
import type { DatabaseAddress } from "../base/database_address.ts";
import type { Database } from "./database.ts";
import { followLinks } from "./own_files.ts";
import { acquirePresence } from "./presence.ts";
import { openRqliteDatabase } from "./rqlite.ts";
import { createRqliteClient } from "./rqlite_client.ts";
import { acquireRqlitePresence } from "./rqlite_presence.ts";
import { openSharedDatabase } from "./shared_database.ts";

/** How a process shows that it lives, and learns who has ended. */
interface Presence {
  /** Calls `release` for each process that has ended, for what it had claimed. */
  forEnded(release: (name: string) => Promise<void>): Promise<void>;
  /** Shows the others that this process has released everything. */
  close(): void | Promise<void>;
}

/**
 * Opens in another thread what this process has open, and shows other processes that the one with
 * this name lives; the port is what `connect` made. It is apart from engine.ts, so that no other
 * thread has to read what judges, migrates and copies databases.
 */
export async function openInThread(
  config: {
    readonly database: DatabaseAddress;
    readonly databaseCredentials: string | undefined;
  },
  port: MessagePort | undefined,
  name: string,
): Promise<{ readonly database: Database; readonly presence: Presence }> {
  const { database: address, databaseCredentials: credentials } = config;
  if (address.kind === "file") {
    if (port === undefined) throw new Error("The database's writer has given no port");
    const path = followLinks(address.path);
    return { database: openSharedDatabase(path, port), presence: acquirePresence(path, name) };
  }
  const database = openRqliteDatabase(createRqliteClient({ ...address, credentials }));
  return { database, presence: await acquireRqlitePresence(database, name) };
}
