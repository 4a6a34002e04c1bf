import { isScopeName } from "../oauth/scope.ts";

/** What an object literal or a module has. */
export type Members = Readonly<Record<string, unknown>>;

/** The scopes that a field names, one or several. */
export function checkScopes(value: unknown, where: string, reasons: string[]): readonly string[] {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const scopes = names.filter((name) => typeof name === "string" && isScopeName(name));
  if (scopes.length < names.length) {
    // An empty string does not mean "any token": it may be a variable that was not set.
    reasons.push(`${where} must be a scope's name or a list of them, each 1 to 64 characters ` +
      "without space and comma");
  }
  return [...new Set(scopes.map(String))];
}

/** The members of what may be a description alone, or one in an object with more. */
export function checkDeclaration(
  declared: unknown,
  where: string,
  fields: readonly string[],
  reasons: string[],
): Members {
  const members = isPlainObject(declared) ? declared : { description: declared };
  if (typeof members["description"] !== "string") {
    reasons.push(`${where} must be a description or { ${fields.join(", ")}? }`);
  }
  checkFields(members, fields, where, reasons);
  return members;
}

/** The function at `name`, to be called as its object's method. */
export function checkFunction(
  value: Members,
  name: string,
  reasons: string[],
): ((context: unknown) => unknown) | undefined {
  const found = value[name];
  if (typeof found === "function") return found.bind(value);
  reasons.push(`${name} must be a function`);
  return undefined;
}

/** Says which members are none that `what` has. */
export function checkFields(
  value: Members,
  known: readonly string[],
  what: string,
  reasons: string[],
): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) reasons.push(`"${name}" is not a field of ${what}`);
  }
}

/** Tells whether `value` is an object literal: not of a class, not an array, not a function. */
export function isPlainObject(value: unknown): value is Members {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
