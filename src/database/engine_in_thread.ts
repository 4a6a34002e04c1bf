import type { MessagePort } from "node:worker_threads";
import type { DatabaseAddress } from "../base/database_address.ts";
import { followLinks } from "./own_files.ts";
import { acquirePresence } from "./presence.ts";
import type { createRqliteClock } from "./rqlite_clock.ts";
import { openSharedDatabase } from "./shared_database.ts";

/** The address of a database, and `user:password` for a cluster that wants them. */
export interface DatabaseSettings {
  readonly database: DatabaseAddress;
  readonly databaseCredentials: string | undefined;
}

/** The comparison of this machine's clock with the clocks of a cluster's nodes. */
export type ClockCheck = Pick<ReturnType<typeof createRqliteClock>, "look" | "state">;

/**
 * Opens the process's database in another thread, and shows other processes that the process `name`
 * is alive. `port` comes from `OpenDatabase.connect`. This is not in engine.ts, so that the thread
 * does not load the code that judges, migrates and copies databases.
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

/** All processes that use a file are on one machine and share its clock. */
const ONE_MACHINE: ClockCheck = { look: () => Promise.resolve(), state: () => "ok" };
