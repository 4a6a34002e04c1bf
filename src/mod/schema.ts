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
export type Infer<S> = S extends StandardSchema<infer _In, infer Out> ? Out
  : S extends { readonly const: infer C } ? C
  : S extends { readonly enum: readonly (infer E)[] } ? E
  : OfTypes<S> & (S extends { readonly anyOf: readonly (infer A)[] } ? Infer<A> : unknown);

type OfTypes<S> = S extends { readonly type: readonly (infer T)[] } ? OfType<S, T>
  : S extends { readonly type: infer T } ? OfType<S, T>
  : unknown;

type OfType<S, T> = T extends "string" ? string
  : T extends "number" | "integer" ? number
  : T extends "boolean" ? boolean
  : T extends "null" ? null
  : T extends "array" ? readonly Infer<S extends { readonly items: infer I } ? I : unknown>[]
  : T extends "object" ? OfMembers<S>
  : unknown;

type OfMembers<S> = S extends { readonly properties: infer P }
  ? Flat<
    & { readonly [K in keyof P as IsThere<S, P, K> extends true ? K : never]: Infer<P[K]> }
    & { readonly [K in keyof P as IsThere<S, P, K> extends true ? never : K]?: Infer<P[K]> }
  >
  : Readonly<Record<string, S extends { readonly additionalProperties: infer A extends object }
    ? Infer<A>
    : unknown>>;

type IsThere<S, P, K extends keyof P> = S extends { readonly required: readonly (infer R)[] }
  ? K extends R ? true : HasDefault<P[K]>
  : HasDefault<P[K]>;
type HasDefault<S> = S extends { readonly default: unknown } ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
