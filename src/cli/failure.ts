import type { FieldError } from "../base/problem.ts";
import { Problem } from "../base/problem.ts";
import { SealError } from "../base/seal.ts";
import { LoadError } from "../hosting/load.ts";
import { UnavailableError, UnusableDatabaseError } from "../database/database.ts";
import { visible } from "./table.ts";

/** The command line itself is wrong: nothing was done, exit 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** It could not be done; the message says why, in a line for each reason. Exit 1. */
export class Failure extends Error {
  override readonly name = "Failure";
}

/** What any error is for the person at the command line; an unforeseen one keeps its stack. */
export function explain(error: unknown): string {
  if (error instanceof Problem) return explainProblem(error);
  if (error instanceof UnavailableError) {
    return `The database is busy or cannot be written (${reason(error.cause ?? error)}). ` +
      "Nothing was changed; try again.";
  }
  const isForeseen = [Failure, UsageError, UnusableDatabaseError, LoadError, SealError]
    .some((kind) => error instanceof kind);
  if (isForeseen || isSystemError(error)) return reason(error);
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

/** What HTTP would answer in place of an error, where that is something to act on. */
export function findProblem(error: unknown): Problem | undefined {
  if (!(error instanceof UnavailableError)) return error instanceof Problem ? error : undefined;
  return new Problem(503, "unavailable", "Storage is unavailable; nothing was stored.");
}

function explainProblem({ message, errors }: Problem): string {
  if (errors.length === 0) return visible(message);
  const head = message.replace(/; see errors\.$/, ":");
  return [head, ...errors.map((fault) => `  ${explainError(fault)}`)].map(visible).join("\n");
}

/** `redirect_uris 1: Must …` for `/redirect_uris/0`: people count from one. */
function explainError({ pointer, detail }: FieldError): string {
  if (pointer === "") return detail;
  const parts = pointer.slice(1).split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => /^\d+$/.test(part) ? String(Number(part) + 1) : part);
  return `${parts.join(" ")}: ${detail}`;
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "code" in error && ("syscall" in error || "errcode" in error);
}
