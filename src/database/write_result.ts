import { ConflictError, OutcomeUnknownError, type Refusal, UnavailableError } from "./database.ts";

/**
 * The outcome of one batch: the rows that each statement changed, or why nothing is stored. With
 * `unknown` it may be stored.
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

/** Settles the promise of a batch; rejects it if there is no result. */
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
  /** Why nothing of the commit is stored, or why nobody knows whether it is. */
  readonly refusal: Refusal | undefined;
  /** Why a long log cannot be emptied into the file; no write waits for that. */
  readonly logFailure?: string | undefined;
}

/** Why a whole group was refused; undefined if a batch was stored, or failed by itself. */
export function refusalOfGroup(results: readonly WriteResult[]): Refusal | undefined {
  const refusals = results.map((result) => "refusal" in result && result.refusal);
  return refusals.every((refusal) => refusal !== false) ? refusals[0] : undefined;
}
