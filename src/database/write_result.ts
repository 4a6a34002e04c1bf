import { ConflictError, type Refusal, UnavailableError } from "./database.ts";

/**
 * What became of one batch, in the form in which it goes from thread to thread: rows changed per
 * statement, or why nothing of it is stored.
 */
export type WriteResult =
  | { readonly kind: "stored"; readonly changes: number[] }
  | { readonly kind: "conflict" | "fault"; readonly message: string }
  | { readonly kind: "unavailable"; readonly message: string; readonly refusal?: Refusal };

/** The error that stands for a batch which was not stored; without a result for none that came. */
export function errorOf(result: Exclude<WriteResult, { kind: "stored" }> | undefined): Error {
  switch (result?.kind) {
    case "conflict":
      return new ConflictError(result.message);
    case "unavailable":
      return new UnavailableError(result.message);
    default:
      return new Error(result?.message ?? "The database writer gave no result");
  }
}

/** The result that stands for an error of `write`. */
export function resultOf(error: unknown): WriteResult {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ConflictError) return { kind: "conflict", message };
  return { kind: error instanceof UnavailableError ? "unavailable" : "fault", message };
}
