import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Seal } from "../base/seal.ts";
import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import { cannotOpen } from "./judge.ts";
import type { Sql } from "./sql.ts";
import { prepareSqliteFile } from "./migrate.ts";
import { followLinks, identify, watchOwnFiles } from "./own_files.ts";
import { openSqliteReader } from "./sqlite_reader.ts";
import { createSqliteWriter } from "./sqlite_writer.ts";
import { type CommitReport, settle, type WriteResult } from "./write_result.ts";

interface Waiting extends PromiseWithResolvers<number[]> {
  readonly batch: readonly Sql[];
}

/** The most batches in one commit, so that the next ones need not wait long. */
const GROUP_LIMIT = 512;

/**
 * Opens the SQLite engine on a file. Reads run in this thread, on a connection that cannot write.
 * Writes run in a worker thread, so neither a slow disk nor another process's lock delays reads.
 * While one group of batches is committed, the next one gathers. Throws UnusableDatabaseError.
 */
export function openSqliteDatabase(
  given: string,
  observe: (commit: CommitReport) => void = () => {},
  seal?: Seal,
) {
  const path = followLinks(given);
  prepareSqliteFile(path, seal);
  const identity = identify(path);
  const reader = openReader(path);
  const files = watchOwnFiles(given, path, identity);
  files.areInPlace(); // remembers the log and its index, which exist from now on
  const writer = createSqliteWriter({ given, path, identity }, onCommit, onEnd);
  const gathering: Waiting[] = [];
  let committing: readonly Waiting[] = [];
  let committedAtMs = 0;
  let closing: Promise<void> | undefined;

  function flush(): void {
    if (committing.length > 0 || gathering.length === 0) return;
    committing = gathering.splice(0, GROUP_LIMIT);
    writer.post(committing.map(({ batch }) => batch));
  }

  function onCommit(report: CommitReport, results: readonly WriteResult[]): void {
    observe(report);
    if (report.refusal === undefined) committedAtMs = Date.now();
    if (results.length === 0) return; // all batches came from other threads
    const done = committing;
    committing = [];
    // The file is locked. Batches that gathered meanwhile would have to wait as long once more.
    const refused = report.refusal === "locked" ? gathering.splice(0) : [];
    flush(); // the next group commits while this one's results go out
    done.forEach((waiting, index) => settle(waiting, results[index]));
    for (const waiting of refused) settle(waiting, results[0]);
  }

  function onEnd(cause: unknown): void {
    const [sent, unsent] = [committing, gathering.splice(0)];
    committing = [];
    const batches = sent.length + unsent.length;
    if (batches > 0) observe({ batches, ms: 0, refusal: "failing" });
    const message = "The database writer has ended";
    for (const { reject } of sent) reject(new OutcomeUnknownError(message, { cause }));
    for (const { reject } of unsent) reject(new UnavailableError(message, { cause }));
  }

  async function close(): Promise<void> {
    const waiting = [...committing, ...gathering];
    await Promise.allSettled(waiting.map(({ promise }) => promise));
    // The last connection to close moves the log into the file. If others may have written past
    // this log, the reader stays open to prevent that: it would mix the two.
    if (files.areInPlace() || files.isLogGone(committedAtMs)) reader.close();
    await writer.close();
  }

  return {
    query: reader.query,
    write(batch: readonly Sql[]): Promise<number[]> {
      if (closing) return Promise.reject(new UnavailableError("The database is closed"));
      const { promise, resolve, reject } = Promise.withResolvers<number[]>();
      gathering.push({ batch, promise, resolve, reject }); // a spread would cost a microsecond
      // After this turn of the event loop, so that its other writes join the group.
      if (gathering.length === 1 && committing.length === 0) setImmediate(flush);
      return promise;
    },
    /** Makes a port for `openSharedDatabase` in another thread; it closes when the writer ends. */
    connect(): MessagePort {
      const { port1, port2 } = new MessageChannel();
      writer.post({ port: port1 }, [port1]);
      return port2;
    },
    close: () => closing ??= close(),
  };
}

/** Throws UnusableDatabaseError: the disk may have no space for the log that a connection needs. */
function openReader(path: string): ReturnType<typeof openSqliteReader> {
  try {
    return openSqliteReader(path);
  } catch (error) {
    throw cannotOpen(path, error);
  }
}
