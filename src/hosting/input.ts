import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { checkErrors, type FieldError } from "../base/problem.ts";
import { LIST_LIMIT, type Shape } from "../base/shape.ts";
import { type BodyRules, parseFields, readAnyBody } from "../http/body.ts";
import type { Context } from "../mod.ts";
import type { LoadedEndpoint } from "./check_endpoint.ts";
import type { WebRequestParts } from "./web_request.ts";

/** The input of a handler, parsed by the endpoint's schemas where it has them. */
export interface Input extends Pick<Context<unknown>, "params" | "body"> {
  /** Undefined where the query has no schema. */
  readonly query: Context["query"] | undefined;
  /** The bytes of the body, where they were read. */
  readonly bytes: Buffer | undefined;
}

type ReadInput = (
  request: HttpRequest,
  params: Input["params"],
  authenticateAgain: WebRequestParts["authenticateAgain"],
) => Input | Promise<Input>;

/**
 * Makes a function that reads the input of an endpoint. It returns a promise only if it must wait.
 * Rejects with Problem 400 that lists every error, 413 or 415.
 */
export function createInputReader(
  { input, takesForms, idempotent }: Pick<LoadedEndpoint, "input" | "takesForms" | "idempotent">,
  limits: Pick<BodyRules, "maxBytes" | "maxFormBytes">,
): ReadInput {
  const kinds: BodyRules["kinds"] = [
    "json",
    ...takesForms ? ["form" as const] : [],
    ...input.body ? [] : ["other" as const],
  ];
  const rules = { ...limits, kinds, readsAll: idempotent };
  const hasSchema = Boolean(input.params ?? input.query ?? input.body);

  async function readAndCheck(...[request, params, authenticateAgain]: Parameters<ReadInput>) {
    const { value: body, bytes } = await readAnyBody(request, rules);
    const again = bytes && authenticateAgain();
    if (again) await again;
    if (!hasSchema) return { params, query: undefined, body, bytes };

    const found: (FieldError & { readonly part: string })[] = [];
    const parse = (part: string, shape: Shape<unknown>, value: unknown): unknown =>
      shape.parse(value, (detail, pointer = "") => {
        if (found.length < LIST_LIMIT) found.push({ part, pointer, detail });
      });
    // The schemas decide the types, which only the handler knows.
    const parsed = {
      params: input.params ? await parse("path", input.params, Object.entries(params)) : params,
      query: input.query && await parse("query", input.query, parseFields(request.query, "query")),
      body: input.body
        ? await parse("body", body instanceof URLSearchParams ? input.body.form : input.body, body)
        : body,
    } as Pick<Input, "params" | "query" | "body">;

    // A pointer starts at its part. Where several parts are wrong, each detail names its part.
    const [first = "", ...others] = new Set(found.map(({ part }) => part));
    const isOne = others.length === 0;
    const errors = found.map(({ part, pointer, detail }) =>
      ({ pointer, detail: isOne ? detail : `In the ${part}: ${detail}` })
    );
    checkErrors(errors, isOne ? first : "request");
    return { ...parsed, bytes };
  }

  return (request, params, authenticateAgain) =>
    hasSchema || hasBody(request)
      ? readAndCheck(request, params, authenticateAgain)
      : { params, query: undefined, body: undefined, bytes: undefined };
}
