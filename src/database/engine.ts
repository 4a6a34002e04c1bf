import type { MessagePort } from "node:worker_threads";
import { DATABASE_ADDRESS } from "../base/database_address.ts";
import type { Log } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import type { Database } from "./database.ts";
import type { Disk } from "./disk.ts";
import type { DatabaseState } from "./judge.ts";
import type { DatabaseSettings } from "./engine_in_thread.ts";
import type { RqliteClock } from "./rqlite_clock.ts";
import { createSqliteEngine } from "./sqlite_engine.ts";
import type { CommitReport } from "./write_result.ts";

/** One kind of storage, a file or a cluster: what can be done beside `query` and `write`. */
export interface Engine {
  /** The database's address in messages, without secrets. */
  readonly address: string;
  /** Whether the database exists. Throws UnusableDatabaseError. */
  exists(): Promise<boolean>;
  /** Judges by the rules of DESIGN.md whether a server can use the database; changes nothing. */
  judge(seal: Seal): Promise<DatabaseState>;
  /** Reads the database and changes nothing. It must exist and have the newest schema. */
  look<Result>(read: (database: Pick<Database, "query">) => Promise<Result>): Promise<Result>;
  /**
   * Creates or migrates the database, and opens it. With a log, it reports problems there while it
   * is open. Pass the seal if nobody has judged the database: then it is checked here. Throws
   * UnusableDatabaseError.
   */
  open(observe?: (commit: CommitReport) => void, log?: Log, seal?: Seal): Promise<OpenDatabase>;
  /**
   * Copies the database, also while others write, to the new file `target`, mode 0600, which gets
   * its name once it is checked and on disk. Returns its size in bytes. Leaves no copy if it throws
   * UnusableDatabaseError, the signal's reason or the system's error (EEXIST if `target` exists).
   */
  backUp(target: string, signal: AbortSignal): Promise<number>;
  /**
   * Replaces the database by a copy of the file `source`, which is judged first, and keeps the
   * former content in the file `keptAs`. Throws UnusableDatabaseError, also while a process uses
   * the database, the signal's reason or the system's error. Nothing has changed then, unless the
   * message says that this is unknown.
   */
  restore(source: string, seal: Seal, nowMs: number, signal: AbortSignal): Promise<Restored>;
}

/** An open database; other processes may use it at the same time. */
export interface OpenDatabase extends Database {
  /** The same database, for reads that may take long: they do not delay other reads. */
  readonly heavy: Database;
  /** Backs up as `Engine.backUp`, to a file of this name beside the database; not on a cluster. */
  readonly backUpAs: ((name: string) => Promise<number>) | undefined;
  /** The space on the database's disk; undefined if the disk is another machine's or unknown. */
  disk(): Promise<Disk | undefined>;
  /** `ok`, or why stored data may get lost or be wrong although reads and writes work. */
  state(): "ok" | "replaced" | "clock_skewed";
  /** A cluster's nodes, whether each works, and by how much our clock differs from theirs. */
  readonly cluster: Pick<RqliteClock, "nodes" | "skewMs"> | undefined;
  /** Removes overwritten data from the log too. Returns a reason if it can still be read. */
  forgetOverwritten(): string | undefined;
  /** The port with which another thread opens the database; undefined where none is needed. */
  connect(): MessagePort | undefined;
}

/** The result of `restore`: the size, and the file with the former content, if there was any. */
export interface Restored {
  readonly bytes: number;
  readonly keptAs: string | undefined;
}

/**
 * Makes the engine of the configured database; opens nothing yet. The modules for a cluster are
 * loaded for a cluster only, so that a start on a file is faster.
 */
export async function createEngine(
  { database, databaseCredentials: credentials }: DatabaseSettings,
): Promise<Engine> {
  if (database.kind === "file") return createSqliteEngine(database.path);
  const { createRqliteEngine } = await import("./rqlite_engine.ts");
  return createRqliteEngine({ ...database, credentials }, DATABASE_ADDRESS.format(database));
}
