import type { Refusal } from "./database.ts";

// https://sqlite.org/rescode.html: the primary code is the low byte of the extended one.
const CONFLICT_CODE = 19;

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
  26: "damaged", // not a database
};

/** What an error of node:sqlite means: a broken constraint, an engine in trouble, or a mistake. */
export function classifySqliteError(error: unknown): "conflict" | "unavailable" | "error" {
  const code = codeOf(error);
  if (code === CONFLICT_CODE) return "conflict";
  return code in REFUSALS ? "unavailable" : "error";
}

/** Why a write was refused with an error that is "unavailable". */
export function refusalOf(error: unknown): Refusal {
  return REFUSALS[codeOf(error)] ?? "failing";
}

/** The primary code; 0, which means no error, for what SQLite has not thrown. */
function codeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
}
