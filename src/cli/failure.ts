import { unavailable } from "../api/unavailable.ts";
import { type FieldError, Problem } from "../base/problem.ts";
import { SealError } from "../base/seal.ts";
import { LoadError } from "../hosting/load.ts";
import {
  OutcomeUnknownError,
  UnavailableError,
  UnusableDatabaseError,
} from "../database/database.ts";
import { visible } from "./table.ts";

/** The command line is wrong and nothing was done; exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed; the message has a line for each reason. Exit code 1. */
export class Failure extends Error {
  override readonly name = "Failure";
}

/** Returns an error in words for the operator; an unforeseen error keeps its stack. */
export function explain(error: unknown): string {
  if (error instanceof Problem) return explainProblem(error);
  if (error instanceof OutcomeUnknownError) return unavailable(error).message;
  if (error instanceof UnavailableError) {
    const { message } = error.cause instanceof Error ? error.cause : error;
    return `The database is busy or cannot be written (${message}). ` +
      "Nothing was changed; try again.";
  }
  if (!(error instanceof Error)) return String(error);
  const isExpected = [Failure, UnusableDatabaseError, LoadError, SealError]
    .some((kind) => error instanceof kind);
  const isSystemError = "code" in error &&
    ("syscall" in error || "errcode" in error || error.code === "ECONNRESET");
  return isExpected || isSystemError ? error.message : error.stack ?? error.message;
}

/** Returns the problem that HTTP would respond with, if the caller can do something about it. */
export function findProblem(error: unknown): Problem | undefined {
  if (error instanceof UnavailableError) return unavailable(error, "this");
  return error instanceof Problem ? error : undefined;
}

/** Formats a problem with its errors. HTTP's "The body is not valid" would not fit a command. */
function explainProblem({ message, errors }: Problem): string {
  const head = errors.length > 0 ? "The input is not valid:" : message;
  return [head, ...errors.map(explainError)].map(visible).join("\n  ");
}

/** Formats `/redirect_uris/0` as `redirect_uris 1: Must …`, since people count from one. */
function explainError({ pointer, detail }: FieldError): string {
  if (pointer === "") return detail;
  const parts = pointer.slice(1).split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => /^\d+$/.test(part) ? String(Number(part) + 1) : part);
  return `${parts.join(" ")}: ${detail}`;
}
