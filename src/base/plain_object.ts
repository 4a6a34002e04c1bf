/** The members of an object literal or a module. */
export type Members = Readonly<Record<string, unknown>>;

/** Tells whether `value` is an object literal: not of a class, not an array, not a function. */
export function isPlainObject(value: unknown): value is Members {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
