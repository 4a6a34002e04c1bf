import { type FieldError, firstErrors } from "../base/problem.ts";
import { reportTo, type Shape } from "../base/shape.ts";

/**
 * Returns data as its shape parses it: with defaults, or as a library's schema returns it.
 *
 * @throws {TypeError} that lists every error, or says that the schema is asynchronous
 */
export function checkData<T>(shape: Shape<T>, data: unknown, what = "The event's data"): T {
  const errors: FieldError[] = [];
  const parsed = shape.parse(data, reportTo(errors));
  if (parsed instanceof Promise) {
    parsed.catch(() => {}); // nobody waits for it
    throw new TypeError("The schema of an event must be synchronous.");
  }
  if (errors.length === 0) return parsed;
  throw typeError(`${what} is not valid:`, errors);
}

/** Returns a TypeError for authors of modules, with the errors that `firstErrors` keeps. */
export function typeError(what: string, errors: readonly FieldError[]): TypeError {
  return new TypeError([what, ...firstErrors(errors).map(errorLine)].join("\n"));
}

/** Returns an error as one line: its pointer and what is wrong. */
export function errorLine({ pointer, detail }: FieldError): string {
  return `${pointer || "/"} ${detail}`;
}
