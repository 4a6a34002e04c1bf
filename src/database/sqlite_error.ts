import { messageOf } from "../base/message_of.ts";
import { type Refusal, UnavailableError } from "./database.ts";
import type { WriteResult } from "./write_result.ts";

// https://sqlite.org/rescode.html: the primary code is the low byte of the extended one.
const CONFLICT_CODE = 19;
/** What fails after a commit is in the log: its flush, and the growth of the log's index. */
const AFTER_COMMIT = [
  10 | 4 << 8, // SQLITE_IOERR_FSYNC
  10 | 19 << 8, // SQLITE_IOERR_SHMSIZE
  10 | 21 << 8, // SQLITE_IOERR_SHMMAP
];

/** Codes of an engine in trouble: among them out of memory, I/O error and cannot open. */
const REFUSALS: Readonly<Record<number, Refusal>> = {
  5: "locked",
  6: "locked",
  7: "failing",
  8: "read_only",
  10: "failing",
  11: "damaged",
  13: "full",
  14: "failing",
  15: "locked", // for ten seconds a lock of the log's index was not to be had
  26: "damaged", // not a database
};

/** What trouble of the engine an error of node:sqlite tells of; undefined where of none. */
export function refusalOf(error: unknown): Refusal | undefined {
  return REFUSALS[codeOf(error) & 0xff];
}

/** The result for an error of SQLite, or of the writer itself where files were replaced. */
export function resultOf(error: unknown): WriteResult {
  const message = messageOf(error);
  const code = codeOf(error);
  const refusal = error instanceof UnavailableError ? "replaced" : refusalOf(error);
  if (refusal !== undefined) {
    // The log has it then until the next commit takes its place, and whoever opens the file after a
    // crash finds it there.
    return { kind: AFTER_COMMIT.includes(code) ? "unknown" : "unavailable", message, refusal };
  }
  return { kind: (code & 0xff) === CONFLICT_CODE ? "conflict" : "error", message };
}

/** The extended code; 0, which means no error, for what SQLite has not thrown. */
function codeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : 0;
}
