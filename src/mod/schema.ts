/** What a schema of an endpoint module may be, and the type of the values that it describes. */

/** A schema: of JSON Schema, or of a library that has Standard Schema v1, such as Zod. */
export type AnySchema = JsonSchema | StandardSchema;

/** The names of JSON's types, as JSON Schema has them. */
export type TypeName = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

/**
 * The part of JSON Schema 2020-12 that is taken; any other keyword stops the start. A member with
 * a `default` is there once the value has been checked.
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
  /** In characters, as `maxLength`. */
  readonly minLength?: number;
  readonly maxLength?: number;
  /**
   * A regular expression (with flag `u`). One that could take long on a long text is refused: begin
   * it with `^`, let the next character decide which way it goes, or give a `maxLength`.
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

/** What a library's schema has (https://standardschema.dev, version 1). */
export interface StandardSchema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    // A method, so that schemas of any type are schemas of unknown ones.
    validate(value: unknown): StandardResult<Out> | Promise<StandardResult<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** What a library says of a value. */
export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of what a schema has checked. */
export type Infer<S> = TypeOf<S, "output">;

/** The type of what a schema takes: a member that has a `default` may be missing. */
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

/** The names of members that are always there. */
type There<S, P, Side> = Side extends "input" ? Exclude<RequiredOf<S>, Defaulted<P>>
  : RequiredOf<S> | Defaulted<P>;
type RequiredOf<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;
type Defaulted<P> = {
  [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never;
}[keyof P];
type Flat<T> = { [K in keyof T]: T[K] };
