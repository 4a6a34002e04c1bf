import { checkErrors, type FieldError, Problem } from "./problem.ts";

/** More faults of one body than these are not told: nobody reads them. */
const MAX_FAULTS = 100;

/** No list of strings from outside is longer. */
export const LIST_LIMIT = 100;

/** Says what is wrong with a value, or undefined when it is good. */
export type Check = (text: string) => string | undefined;

/**
 * The members of one JSON object from outside, read one by one. Every fault is remembered (of very
 * many the first 100) and `finish` throws them all at once, members that nothing asked for among them.
 */
export interface Fields {
  /** A string that must be there; "" after a fault, which `finish` then throws. */
  requiredText(name: string, check?: Check): string;
  /** A string, or undefined when it is missing. */
  text(name: string, check?: Check): string | undefined;
  /** One of the given words, or undefined when it is missing. */
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined;
  flag(name: string): boolean | undefined;
  /** A list of strings without repetition, or undefined when it is missing. */
  list(name: string, check: Check, limit?: number): string[] | undefined;
  /** Whatever JSON the member holds; `has` tells null from missing. */
  value(name: string): unknown;
  has(name: string): boolean;
  report(name: string, detail: string): void;
  /** Throws Problem 400 with all faults; `what` names the object in its detail. */
  finish(what: string, options?: { readonly ignoreUnknown?: boolean }): void;
}

/** Opens a JSON value that must be an object; throws Problem 400 when it is not. */
export function openFields(value: unknown): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Problem(400, "invalid", "The body must be a JSON object.", {
      errors: [{ pointer: "", detail: "Must be an object." }],
    });
  }
  const members = new Map<string, unknown>(Object.entries(value));
  const asked = new Set<string>();
  const errors: FieldError[] = [];

  const report = (name: string, detail: string, index?: number): void => {
    if (errors.length === MAX_FAULTS) return;
    const pointer = "/" + name.replaceAll("~", "~0").replaceAll("/", "~1");
    errors.push({ pointer: index === undefined ? pointer : `${pointer}/${index}`, detail });
  };
  const take = (name: string): unknown => {
    asked.add(name);
    return members.get(name);
  };
  const text = (name: string, check?: Check): string | undefined => {
    const given = take(name);
    if (given === undefined) return undefined;
    if (typeof given !== "string") {
      report(name, "Must be a string.");
      return undefined;
    }
    const wrong = check?.(given);
    if (wrong !== undefined) report(name, wrong);
    return given;
  };

  return {
    text,
    requiredText(name, check) {
      if (!members.has(name)) report(name, "Is required.");
      return text(name, check) ?? "";
    },
    word<Word extends string>(name: string, words: readonly Word[]) {
      const given = take(name);
      if (given === undefined) return undefined;
      const found = words.find((word) => word === given);
      if (found === undefined) report(name, `Must be one of: ${words.join(", ")}.`);
      return found;
    },
    flag(name) {
      const given = take(name);
      if (given === undefined || typeof given === "boolean") return given;
      report(name, "Must be true or false.");
      return undefined;
    },
    list(name, check, limit = LIST_LIMIT) {
      const given = take(name);
      if (given === undefined) return undefined;
      if (!Array.isArray(given) || given.length > limit) {
        report(name, `Must be a list of at most ${limit} strings.`);
        return undefined;
      }
      const strings: string[] = [];
      given.forEach((item: unknown, index) => {
        const wrong = typeof item === "string" ? check(item) : "Must be a string.";
        if (wrong !== undefined) report(name, wrong, index);
        else strings.push(String(item));
      });
      return [...new Set(strings)];
    },
    value: take,
    has: (name) => members.has(name),
    report: (name, detail) => report(name, detail),
    finish(what, { ignoreUnknown = false } = {}) {
      if (!ignoreUnknown) {
        for (const name of members.keys()) {
          if (!asked.has(name)) report(name, "Is not known here.");
        }
      }
      checkErrors(errors, what);
    },
  };
}
