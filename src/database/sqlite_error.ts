import { messageOf } from "../base/message_of.ts";
import { type Refusal, UnavailableError } from "./database.ts";
import type { WriteResult } from "./write_result.ts";

// https://sqlite.org/rescode.html: the primary code is the low byte of the extended one.
const CONFLICT_CODE = 19;
/** Errors that occur when a commit is in the log already: as it is flushed, or the index grows. */
const AFTER_COMMIT = [
  10 | 4 << 8, // SQLITE_IOERR_FSYNC
  10 | 19 << 8, // SQLITE_IOERR_SHMSIZE
  10 | 21 << 8, // SQLITE_IOERR_SHMMAP
];

/** Primary codes of an engine in trouble: among them out of memory, I/O error, cannot open. */
const REFUSALS: Readonly<Record<number, Refusal>> = {
  5: "locked",
  6: "locked",
  7: "failing",
  8: "read_only",
  10: "failing",
  11: "damaged",
  13: "full",
  14: "failing",
  15: "locked", // a lock of the log's index was not free for ten seconds
  26: "damaged", // not a database
};

/** Returns which trouble of the engine an error of node:sqlite means; undefined if none. */
export function refusalOf(error: unknown): Refusal | undefined {
  return REFUSALS[codeOf(error) & 0xff];
}

/** The result for an error of SQLite, or of the writer itself if files were replaced. */
export function resultOf(error: unknown): WriteResult {
  const message = messageOf(error);
  const code = codeOf(error);
  const refusal = error instanceof UnavailableError ? "replaced" : refusalOf(error);
  if (refusal !== undefined) {
    // The commit stays in the log until the next one overwrites it. If a crash comes first, the
    // next process that opens the file applies it.
    return { kind: AFTER_COMMIT.includes(code) ? "unknown" : "unavailable", message, refusal };
  }
  return { kind: (code & 0xff) === CONFLICT_CODE ? "conflict" : "error", message };
}

/** The extended code of an SQLite error; 0 (no error) for any other. */
function codeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : 0;
}
