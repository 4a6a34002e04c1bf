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

/** What stands around the two verbs of `Database`: one kind of place that holds a database. */
export interface Engine {
  /** What messages call it, without a secret. */
  readonly address: string;
  /** Whether there is a database yet. */
  exists(): Promise<boolean>;
  /** Whether a server can work on it, by the rules of DESIGN.md; changes nothing. */
  judge(seal: Seal): Promise<DatabaseState>;
  /** Reads it and changes nothing; it is there, and its schema the newest. */
  look<Result>(read: (database: Pick<Database, "query">) => Promise<Result>): Promise<Result>;
  /**
   * Makes or migrates it, and opens it; with a log, what the operator should know of it while it is
   * open goes there. One that has not been judged is first, with the seal. Throws
   * UnusableDatabaseError.
   */
  open(observe?: (commit: CommitReport) => void, log?: Log, seal?: Seal): Promise<OpenDatabase>;
  /**
   * Copies it, also while others write to it, to a new file, mode 0600, that is checked and on disk
   * when it gets its name. Returns its size in bytes. Throws UnusableDatabaseError, the signal's
   * reason or the system's error, EEXIST where the target is there; then there is no copy.
   */
  backUp(target: string, signal: AbortSignal): Promise<number>;
  /**
   * Puts a copy of the file `source`, which is judged first, in its place, and keeps what was there
   * in the file `keptAs`. Throws UnusableDatabaseError, also while any process works on it, the
   * signal's reason or the system's error; then nothing has changed, or the message says that this
   * is not known.
   */
  restore(source: string, seal: Seal, nowMs: number, signal: AbortSignal): Promise<Restored>;
}

/** A database that this process works on, and that others may. */
export interface OpenDatabase extends Database {
  /** The same, for reads that may take long: they delay no others. */
  readonly heavy: Database;
  /** Copies it as `Engine.backUp` does, to a file of this name beside its own, if it has one. */
  readonly backUpAs: ((name: string) => Promise<number>) | undefined;
  /** The disk that it is on, if that is this machine's. */
  disk(): Promise<Disk | undefined>;
  /** Why what is stored might be lost or wrong, although it can be read and written. */
  state(): "ok" | "replaced" | "clock_skewed";
  /** Of a cluster: its nodes, whether each works, and by how much our clock differs from theirs. */
  readonly cluster: Pick<RqliteClock, "nodes" | "skewMs"> | undefined;
  /** Removes what has been overwritten also from logs; returns why it can still be read. */
  forgetOverwritten(): string | undefined;
  /** What another thread needs to open it too; undefined where that needs nothing. */
  connect(): MessagePort | undefined;
}

/** What `restore` has done. */
export interface Restored {
  readonly bytes: number;
  readonly keptAs: string | undefined;
}

/**
 * Makes the engine of the database that the configuration names; nothing is opened yet. What works
 * on a cluster is read for one alone: a start on a file would take longer.
 */
export async function createEngine(
  { database, databaseCredentials: credentials }: DatabaseSettings,
): Promise<Engine> {
  if (database.kind === "file") return createSqliteEngine(database.path);
  const { createRqliteEngine } = await import("./rqlite_engine.ts");
  return createRqliteEngine({ ...database, credentials }, DATABASE_ADDRESS.format(database));
}
