import { parseForm } from "../base/form.ts";
import type { HttpRequest } from "../base/http_message.ts";
import { checkErrors, type FieldError, malformed } from "../base/problem.ts";
import { type Members, parseShape, type Shape } from "../base/shape.ts";
import { readJson } from "../http/body.ts";

/**
 * Parses the query of a request by the shapes of its parameters; unknown parameters are ignored.
 * Throws Problem 400 that lists every error.
 */
export function readQuery(query: string, members: Members): Record<string, unknown> {
  const form = parseForm(query);
  if (!form) throw malformed("The query is not well-formed.");
  const errors: FieldError[] = [];
  const entries = Object.entries(members).flatMap(([name, shape]) => {
    const report = (detail: string) => void errors.push({ pointer: `/${name}`, detail });
    if (form.duplicates.includes(name)) report("Must be given once.");
    const value = form.get(name);
    if (value !== undefined) return [[name, shape.parse(value, report)]];
    return shape.fallback === undefined ? [] : [[name, shape.fallback]];
  });
  checkErrors(errors, "query");
  return Object.fromEntries(entries);
}

/**
 * Parses the body of a request by its shape; undefined if an optional body is missing. Throws
 * Problem 400 that lists every error, 413 or 415.
 */
export async function readBody<T>(shape: Shape<T>, request: HttpRequest, limitBytes: number) {
  const json = await readJson(request, limitBytes, shape.isOptional);
  return json === undefined ? undefined : parseShape(shape, json, "body");
}
