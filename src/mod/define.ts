import type { Answer, Caller, Context, Dispatch, Refusal } from "./context.ts";
import type { Emits, EndpointBase, Input } from "./endpoint.ts";
import type { AnySchema, Infer } from "./schema.ts";

/**
 * The type of a function that returns its argument. It infers the handler's types from the
 * endpoint's schemas, events and scope.
 *
 * @example
 * ```ts
 * const endpoint: DefineEndpoint = (given) => given;
 *
 * export const hello = endpoint({ method: "GET", path: "/hello", public: true, handle: () => 1 });
 * ```
 */
export type DefineEndpoint = <
  const I extends Input = object,
  const E extends Emits = Record<never, never>,
  const S extends string | readonly string[] | undefined = undefined,
  const O extends AnySchema = never,
  More extends object = object,
>(endpoint: TypedEndpoint<I, E, S, O, More>) => TypedEndpoint<I, E, S, O, More>;

/** An endpoint whose handler's types follow from its schemas, events and scope. */
export interface TypedEndpoint<I, E, S, O, More> extends Omit<EndpointBase, "before"> {
  readonly scope?: S;
  readonly public?: S extends undefined ? true : never;
  readonly input?: I & Input;
  readonly output?: O & AnySchema;
  readonly emits?: E & Emits;
  before?(context: TypedContext<I, E, S>): More | void | Promise<More | void>;
  handle(context: TypedContext<I, E, S> & More): Result<O> | Promise<Result<O>>;
}

type TypedContext<I, E, S> =
  & Omit<Context<BodyOf<I>, S extends undefined ? undefined : Caller>, keyof Parsed<I> | "dispatch">
  & Parsed<I>
  & { readonly dispatch: Dispatch<E> };
type BodyOf<I> = I extends { readonly body: infer S } ? Infer<S> : Context["body"];
/** The types of parameters and query, as their schemas describe them. */
type Parsed<I> = {
  readonly [K in keyof I as K extends "params" | "query" ? K : never]: Infer<I[K]>;
};
type Result<O> = [O] extends [never] ? unknown
  : Infer<O> | Answer<Infer<O>> | Refusal | Response;
