import type { MessagePort } from "node:worker_threads";
import type { DatabaseAddress } from "../base/database_address.ts";
import { followLinks } from "./own_files.ts";
import { acquirePresence } from "./presence.ts";
import type { createRqliteClock } from "./rqlite_clock.ts";
import { openSharedDatabase } from "./shared_database.ts";

/** Where a database is, and `user:password` where it takes them. */
export interface DatabaseSettings {
  readonly database: DatabaseAddress;
  readonly databaseCredentials: string | undefined;
}

/** The comparison of this machine's clock with those of the others on the database. */
export type ClockCheck = Pick<ReturnType<typeof createRqliteClock>, "look" | "state">;

/**
 * Opens in another thread what this process has open, and shows other processes that the one with
 * this name lives; the port is what `connect` made. It is apart from engine.ts, so that no other
 * thread has to read what judges, migrates and copies databases, and none reads both engines.
 */
export async function openInThread(
  { database: address, databaseCredentials: credentials }: DatabaseSettings,
  port: MessagePort | undefined,
  name: string,
) {
  if (address.kind === "file") {
    if (port === undefined) throw new Error("The database's writer has given no port");
    const path = followLinks(address.path);
    const database = openSharedDatabase(path, port);
    return { database, presence: acquirePresence(path, name), clockCheck: ONE_MACHINE };
  }
  const { openRqliteInThread } = await import("./rqlite.ts");
  return await openRqliteInThread({ ...address, credentials }, name);
}

/** Whoever works on a file goes by one clock. */
const ONE_MACHINE: ClockCheck = { look: () => Promise.resolve(), state: () => "ok" };
