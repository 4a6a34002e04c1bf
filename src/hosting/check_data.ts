import type { FieldError } from "../base/problem.ts";
import { reportTo, type Shape } from "../base/shape.ts";

/**
 * Returns the data of an event as its shape has it: with defaults, and as a library's schema
 * returned it.
 *
 * @throws {TypeError} that lists every error, or says that the schema is asynchronous
 */
export function checkData(shape: Shape<unknown>, data: unknown): unknown {
  const errors: FieldError[] = [];
  const parsed = shape.parse(data, reportTo(errors));
  if (parsed instanceof Promise) {
    parsed.catch(() => {}); // nobody waits for it
    throw new TypeError("The schema of an event must be synchronous.");
  }
  if (errors.length === 0) return parsed;
  const list = errors.map(({ pointer, detail }) => `\n${pointer === "" ? "/" : pointer} ${detail}`);
  throw new TypeError(`The event's data is not valid:${list.join("")}`);
}
