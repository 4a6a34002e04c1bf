import { checkErrors, type FieldError } from "./problem.ts";

/** A schema of JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export type Schema = Readonly<Record<string, unknown>>;

/** Reports what is wrong with a value, at a JSON Pointer (RFC 6901) below it. */
export type Report = (detail: string, pointer?: string) => void;

/** One description of a JSON value: its parser, its JSON Schema and, inferred, its type. */
export interface Shape<T> {
  readonly schema: Schema;
  /** The schemas that `schema` refers to by name. */
  readonly definitions: Readonly<Record<string, Schema>>;
  /**
   * Returns the typed value and reports errors; after an error the result is not used. The `parse`
   * of an endpoint module's schema may return a promise, which hosting awaits.
   */
  parse(value: unknown, report: Report): T;
  /** The member may be missing from its object. */
  readonly isOptional?: true;
  /** What a missing member becomes. */
  readonly fallback?: T;
}

/** The type that a shape describes. */
export type Infer<S> = S extends Shape<infer T> ? T : never;

/** The members of an object by name. */
export type Members = Readonly<Record<string, Shape<unknown>>>;

/** The shape of an object, whose members can be listed. */
export interface ObjectShape<M extends Members> extends Shape<InferMembers<M>> {
  readonly members: M;
}

type OptionalKeys<M> = {
  [K in keyof M]: M[K] extends { readonly isOptional: true } ? K : never;
}[keyof M];
export type InferMembers<M extends Members> =
  & { readonly [K in Exclude<keyof M, OptionalKeys<M>>]: Infer<M[K]> }
  & { readonly [K in OptionalKeys<M>]?: Infer<M[K]> | undefined };

/** Says what is wrong with a string, or undefined when it is right. */
export type Check = (text: string) => string | undefined;

/** The most items of a list from outside, and the most errors reported of one value. */
export const LIST_LIMIT = 100;

/** A string; `check` says what is wrong with one, and `schema` describes the same. */
export function text(check?: Check, schema: Schema = {}): Shape<string> {
  return {
    ...shown<string>({ type: "string", ...schema }),
    parse(value, report) {
      const isText = typeof value === "string";
      // A checked text may be stored as UTF-8, where all lone surrogates become the same character.
      const wrong = !isText ? "Must be a string."
        : check && !value.isWellFormed() ? "Must not have a lone surrogate." : check?.(value);
      if (wrong !== undefined) report(wrong);
      return isText ? value : "";
    },
  };
}

/** A string of this form, which `detail` says in words. */
export function matching(pattern: RegExp, detail: string): Shape<string> {
  const check: Check = (value) => pattern.test(value) ? undefined : detail;
  return text(check, { pattern: pattern.source });
}

/** One of a few words. */
export function oneOf<const W extends string>(...words: readonly W[]): Shape<W> {
  return {
    ...shown<W>({ type: "string", enum: words }),
    parse(value, report) {
      const found = words.find((word) => word === value);
      if (found === undefined) report(`Must be one of: ${words.join(", ")}.`);
      return found as W;
    },
  };
}

export const FLAG: Shape<boolean> = {
  ...shown<boolean>({ type: "boolean" }),
  parse(value, report) {
    if (typeof value !== "boolean") report("Must be true or false.");
    return value === true;
  },
};

/** A whole number, also as the text that a query has. */
export function wholeNumber(minimum: number, maximum: number): Shape<number> {
  return {
    ...shown<number>({ type: "integer", minimum, maximum }),
    parse(value, report) {
      const number = Array.isArray(value) || !/^\d{1,9}$/.test(String(value)) ? -1 : Number(value);
      if (number < minimum || number > maximum) report(`Must be ${minimum} to ${maximum}.`);
      return number;
    },
  };
}

export const ANYTHING = shown<unknown>({});

/** A shape for responses only: it has a schema and a type, and its `parse` checks nothing. */
export function shown<T>(schema: Schema): Shape<T> {
  return { schema, definitions: {}, parse: (value) => value as T };
}

export const TEXT = text();
/** A whole number from 0. */
export const COUNT = shown<number>({ type: "integer", minimum: 0 });
export const NUMBER = shown<number>({ type: "number", minimum: 0 });
export const URI = shown<string>({ type: "string", format: "uri" });

/** A list of at most 100 items, which drops repeated items. */
export function listOf<T>(item: Shape<T>): Shape<readonly T[]> {
  return {
    schema: { type: "array", items: item.schema, maxItems: LIST_LIMIT },
    definitions: item.definitions,
    parse(value, report) {
      if (!Array.isArray(value) || value.length > LIST_LIMIT) {
        report(`Must be a list of at most ${LIST_LIMIT}.`);
        return [];
      }
      const items = value.map((each: unknown, index) => item.parse(each, below(report, index)));
      return [...new Set(items)];
    },
  };
}

/** A list of any length, for responses. */
export function manyOf<T>(item: Shape<T>): Shape<readonly T[]> {
  const schema = { type: "array", items: item.schema };
  return { ...shown<readonly T[]>(schema), definitions: item.definitions };
}

/** The shape, or null. */
export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  const { description, ...schema } = shape.schema;
  return {
    ...shape,
    schema: {
      ...description !== undefined && { description },
      anyOf: [schema, { type: "null" }],
    },
    parse: (value, report) => value === null ? null : shape.parse(value, report),
  };
}

/** A member or a body that may be missing. With a fallback, its parsed value is never missing. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> & { readonly isOptional: true };
export function optional<T>(shape: Shape<T>, fallback: T): Shape<T>;
export function optional<T>(shape: Shape<T>, fallback?: T): Shape<T> {
  return fallback === undefined
    ? { ...shape, isOptional: true }
    : { ...shape, fallback, schema: { ...shape.schema, default: fallback } };
}

/** The same members, any of which may be missing. */
export function allOptional<const M extends Members>(members: M) {
  const entries = Object.entries(members).map(([name, shape]) => [name, optional(shape)]);
  type Optional<T> = Shape<T | undefined> & { readonly isOptional: true };
  return Object.fromEntries(entries) as { readonly [N in keyof M]: Optional<Infer<M[N]>> };
}

/** The shape with a description in its schema. */
export function described<S extends Shape<unknown>>(description: string, shape: S): S {
  return { ...shape, schema: { ...shape.schema, description } };
}

/** An object of exactly these members; others are errors. */
export function object<const M extends Members>(members: M): ObjectShape<M> {
  return record(members, true);
}

/** An object with these members. Others are left out, or are errors if `isStrict`. */
export function record<const M extends Members>(members: M, isStrict = false): ObjectShape<M> {
  const entries = Object.entries(members);
  const required = entries
    .filter(([, { isOptional, fallback }]) => !isOptional && fallback === undefined)
    .map(([name]) => name);
  return {
    members,
    definitions: Object.fromEntries(
      entries.flatMap(([, { definitions }]) => Object.entries(definitions)),
    ),
    schema: {
      type: "object",
      properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])),
      ...(required.length > 0 && { required }),
      ...(isStrict && { additionalProperties: false }),
    },
    parse(value, report) {
      if (!isRecord(value)) {
        report("Must be an object.");
        return {} as InferMembers<M>;
      }
      const parsed = entries.flatMap(([name, shape]) => {
        if (Object.hasOwn(value, name)) {
          return [[name, shape.parse(value[name], below(report, name))]];
        }
        if (shape.fallback !== undefined) return [[name, shape.fallback]];
        if (!shape.isOptional) report("Is required.", pointerTo([name]));
        return [];
      });
      for (const name of isStrict ? Object.keys(value) : []) {
        if (!Object.hasOwn(members, name)) report("Unknown member.", pointerTo([name]));
      }
      return Object.fromEntries(parsed) as InferMembers<M>;
    },
  };
}

/** Returns the record with the members of a change that are not undefined. */
export function withChange<T extends object>(
  before: T,
  change: { readonly [Name in keyof T]?: T[Name] | undefined },
): T {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}

/** The shape of a record with more members, for responses. */
export function withMembers<T, const M extends Members>(base: Shape<T>, members: M) {
  const more = record(members);
  return {
    ...shown<T & InferMembers<M>>({ allOf: [base.schema, more.schema] }),
    definitions: { ...base.definitions, ...more.definitions },
  };
}

/** The shape with a check of the whole value, which runs where its parts are right. */
export function refined<S extends Shape<unknown>>(
  shape: S,
  check: (value: Infer<S>, report: Report) => void,
  schema: Schema = {},
): S {
  return {
    ...shape,
    schema: { ...shape.schema, ...schema },
    parse(value: unknown, report: Report) {
      let isRight = true;
      const parsed = shape.parse(value, (detail, pointer) => {
        isRight = false;
        report(detail, pointer);
      });
      if (isRight) check(parsed as Infer<S>, report);
      return parsed;
    },
  };
}

/** The shape under a name: schemas refer to it as a component of the OpenAPI document. */
export function named<S extends Shape<unknown>>(name: string, shape: S): S {
  return {
    ...shape,
    schema: { $ref: `#/components/schemas/${name}` },
    definitions: { ...shape.definitions, [name]: shape.schema },
  };
}

/** Returns the JSON Pointer (RFC 6901) of a path of names and indexes. */
export function pointerTo(path: readonly PropertyKey[]): string {
  const tokens = path.map((name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1"));
  return tokens.map((token) => `/${token}`).join("");
}

/** Returns a report whose pointers start below a path. */
export function below(report: Report, ...path: readonly PropertyKey[]): Report {
  return (detail, pointer = "") => report(detail, pointerTo(path) + pointer);
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A report that keeps the first 100 errors. */
export function reportTo(errors: FieldError[]): Report {
  return (detail, pointer = "") => {
    if (errors.length < LIST_LIMIT) errors.push({ pointer, detail });
  };
}

/** Returns a value of this shape; throws Problem 400 that lists every error in `what`: "body". */
export function parseShape<T>(shape: Shape<T>, value: unknown, what: string): T {
  const errors: FieldError[] = [];
  const parsed = shape.parse(value, reportTo(errors));
  checkErrors(errors, what);
  return parsed;
}
