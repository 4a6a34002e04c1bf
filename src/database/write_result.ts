import { ConflictError, OutcomeUnknownError, type Refusal, UnavailableError } from "./database.ts";

/**
 * What became of one batch: rows changed per statement, or why nothing of it is stored; `unknown`
 * where it may be.
 */
export type WriteResult =
  | { readonly kind: "stored"; readonly changes: number[] }
  | { readonly kind: "conflict" | "error"; readonly message: string }
  | {
    readonly kind: "unavailable" | "unknown";
    readonly message: string;
    readonly refusal: Refusal;
  };

const ERRORS = {
  conflict: ConflictError,
  unavailable: UnavailableError,
  unknown: OutcomeUnknownError,
  error: Error,
};

/** Settles the promise of a batch; it fails too without a result. */
export function settle(
  { resolve, reject }: PromiseWithResolvers<number[]>,
  result: WriteResult = { kind: "error", message: "The database writer gave no result" },
): void {
  if (result.kind === "stored") resolve(result.changes);
  else reject(new ERRORS[result.kind](result.message));
}

/** How one commit went. */
export interface CommitReport {
  readonly batches: number;
  readonly ms: number;
  /** Why nothing of it is stored, or nobody knows whether it is. */
  readonly refusal: Refusal | undefined;
  /** Why a log that has become long cannot be emptied into the file, which nobody waits for. */
  readonly logFailure?: string | undefined;
}

/** Why a whole group was refused; a batch that broke a constraint was refused alone. */
export function refusalOfGroup(results: readonly WriteResult[]): Refusal | undefined {
  const refusals = results.map((result) => "refusal" in result && result.refusal);
  return refusals.every((refusal) => refusal !== false) ? refusals[0] : undefined;
}
