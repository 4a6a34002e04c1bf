/** What a schema of an endpoint module may be, and the type of the values that it describes. */

/** A schema: JSON Schema, or one of a library that implements Standard Schema v1, such as Zod. */
export type AnySchema = JsonSchema | StandardSchema;

/** The names of types in JSON Schema. */
export type TypeName = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

/**
 * The supported part of JSON Schema 2020-12; any other keyword is a load error. A checked value has
 * every member that has a `default`.
 */
export interface JsonSchema {
  readonly type?: TypeName | readonly TypeName[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  /** In characters, like `maxLength`. */
  readonly minLength?: number;
  readonly maxLength?: number;
  /**
   * A regular expression with flag `u`. A pattern that could take long for a long text is a load
   * error. To avoid it, begin the pattern with `^`, let the next character decide each
   * alternative, or give a `maxLength`.
   */
  readonly pattern?: string;
  readonly format?: "date" | "date-time" | "email" | "uri" | "uuid";
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly default?: unknown;
  readonly title?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly deprecated?: boolean;
}

/** A schema of a library (https://standardschema.dev, version 1). */
export interface StandardSchema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    // A method, so that schemas of any type are schemas of unknown ones.
    validate(value: unknown): StandardResult<Out> | Promise<StandardResult<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** The result of a library's validation. */
export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of a value that a schema has checked. */
export type Infer<S> = TypeOf<S, "output">;

/** The type of a value that a schema accepts; members with a `default` may be missing. */
export type InferInput<S> = TypeOf<S, "input">;

type TypeOf<S, Side> =
  S extends StandardSchema<infer In, infer Out> ? Side extends "input" ? In : Out
  : S extends { readonly const: infer C } ? C
  : S extends { readonly enum: readonly (infer E)[] } ? E
  : OfTypes<S, Side>
    & (S extends { readonly anyOf: readonly (infer A)[] } ? TypeOf<A, Side> : unknown);

type OfTypes<S, Side> = S extends { readonly type: readonly (infer T)[] } ? OfType<S, T, Side>
  : S extends { readonly type: infer T } ? OfType<S, T, Side>
  : unknown;

type OfType<S, T, Side> = T extends "string" ? string
  : T extends "number" | "integer" ? number
  : T extends "boolean" ? boolean
  : T extends "null" ? null
  : T extends "array" ? readonly TypeOf<S extends { readonly items: infer I } ? I : unknown, Side>[]
  : T extends "object" ? OfMembers<S, Side>
  : unknown;

type OfMembers<S, Side> = S extends { readonly properties: infer P }
  ? Flat<
    & { readonly [K in keyof P as K extends There<S, P, Side> ? K : never]: TypeOf<P[K], Side> }
    & { readonly [K in keyof P as K extends There<S, P, Side> ? never : K]?: TypeOf<P[K], Side> }
  >
  : Readonly<Record<string, S extends { readonly additionalProperties: infer A extends object }
    ? TypeOf<A, Side>
    : unknown>>;

/** The names of members that are always present. */
type There<S, P, Side> = Side extends "input" ? Exclude<RequiredOf<S>, Defaulted<P>>
  : RequiredOf<S> | Defaulted<P>;
type RequiredOf<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;
type Defaulted<P> = {
  [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never;
}[keyof P];
type Flat<T> = { [K in keyof T]: T[K] };
