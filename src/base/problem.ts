import { statusText } from "./status_text.ts";

/** One bad field: where it is (JSON Pointer, RFC 6901; "" is the whole body) and what is wrong. */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

/** What a Bearer challenge says beside realm and metadata (RFC 6750 §3). */
export interface Challenge {
  readonly error?: string | undefined;
  readonly scopes?: readonly string[];
  /** RFC 9470 §3. */
  readonly maxAgeSeconds?: number;
}

/** What may go with a problem beside its status, code and detail. */
export interface ProblemOptions {
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** For a 401 or 403 about the access token. The pipeline makes WWW-Authenticate of it. */
  readonly challenge?: Challenge;
  readonly cause?: unknown;
}

/**
 * An outcome that ends a request: thrown anywhere, turned into RFC 9457 problem details in one
 * place. `code` is stable and goes into `type`. `detail` is for people and never has a secret.
 */
export class Problem<Code extends string = string> extends Error {
  override readonly name = "Problem";
  readonly status: number;
  readonly code: Code;
  readonly errors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly challenge: Challenge | undefined;

  constructor(status: number, code: Code, detail: string, options: ProblemOptions = {}) {
    super(detail, options);
    this.status = status;
    this.code = code;
    this.errors = options.errors ?? [];
    this.headers = options.headers ?? {};
    this.challenge = options.challenge;
  }

  /** The short human name of the status, e.g. "Not Found". */
  get title(): string {
    return statusText(this.status);
  }
}

/** A request that cannot be read. */
export function malformed(detail: string): Problem {
  return new Problem(400, "malformed", detail);
}

/** A request that does not fit the current state. */
export function conflict(detail: string, options?: ProblemOptions): Problem {
  return new Problem(409, "conflict", detail, options);
}

/** A request past its limit; `Retry-After` is `waitMs` in whole seconds, at least 1. */
export function tooMany(code: string, detail: string, waitMs: number): Problem {
  const headers = { "Retry-After": String(Math.max(1, Math.ceil(waitMs / 1_000))) };
  return new Problem(429, code, detail, { headers });
}

/** A request with bad fields: a 400 with the errors that `firstErrors` keeps. */
export function invalid(given: readonly FieldError[], what: string): Problem {
  const errors = firstErrors(given);
  return new Problem(400, "invalid", `The ${what} is not valid; see errors.`, { errors });
}

/** The most characters of all errors: a pointer may be as long as the value that it points into. */
const MAX_ERRORS_LENGTH = 65_536;

/** Returns the first errors that fit into the limit together, and always the very first. */
export function firstErrors(errors: readonly FieldError[]): readonly FieldError[] {
  let length = 0;
  return errors.filter(({ pointer, detail }, at) => {
    length += pointer.length + detail.length;
    return at === 0 || length <= MAX_ERRORS_LENGTH;
  });
}

/** Throws `invalid` where there is any error. */
export function checkErrors(errors: readonly FieldError[], what: string): void {
  if (errors.length > 0) throw invalid(errors, what);
}
