import type { Refusal } from "./database.ts";

// https://sqlite.org/rescode.html: the primary code is the low byte of the extended one.
const CONFLICT_CODE = 19;
// Busy, locked, out of memory, read-only, I/O error, full, cannot open: may pass by itself.
const PASSING_CODES = new Set([5, 6, 7, 8, 10, 13, 14]);

const REFUSALS: Readonly<Record<number, Refusal>> = {
  5: "locked",
  6: "locked",
  8: "read_only",
  13: "full",
};

/**
 * What an error of node:sqlite means: a broken constraint, an engine in trouble, or our own
 * mistake.
 */
export function classifySqliteError(error: unknown): "conflict" | "unavailable" | "fault" {
  const code = codeOf(error);
  if (code === CONFLICT_CODE) return "conflict";
  return PASSING_CODES.has(code) ? "unavailable" : "fault";
}

/** Whether an error says that the file is damaged, or is no database (11, 26). */
export function isDamage(error: unknown): boolean {
  return [11, 26].includes(codeOf(error));
}

/** Why a write was refused with an error that is "unavailable". */
export function refusalOf(error: unknown): Refusal {
  return REFUSALS[codeOf(error)] ?? "failing";
}

/** The primary code; 0, which means no error, for what SQLite has not thrown. */
function codeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
}
