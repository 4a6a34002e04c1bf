// https://sqlite.org/rescode.html: the primary code is the low byte of the extended one.
const CONFLICT_CODE = 19;
// Busy, locked, out of memory, read-only, I/O error, full, cannot open: may pass by itself.
const PASSING_CODES = new Set([5, 6, 7, 8, 10, 13, 14]);

/** What an error of node:sqlite means: a broken constraint, an engine in trouble, or our own mistake. */
export function classifySqliteError(error: unknown): "conflict" | "unavailable" | "fault" {
  if (!(error instanceof Error) || !("errcode" in error)) return "fault";
  const code = Number(error.errcode) & 0xff;
  if (code === CONFLICT_CODE) return "conflict";
  return PASSING_CODES.has(code) ? "unavailable" : "fault";
}
