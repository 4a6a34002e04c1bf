import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { checkErrors, type FieldError } from "../base/problem.ts";
import { LIST_LIMIT, type Shape } from "../base/shape.ts";
import { parseFields, readAnyBody } from "../http/body.ts";
import type { Context } from "../mod.ts";
import type { LoadedEndpoint } from "./check_endpoint.ts";
import type { WebRequestParts } from "./web_request.ts";

/** What a handler gets of a request, as its schemas have it where the endpoint has them. */
export interface Input extends Pick<Context<unknown>, "params" | "body"> {
  /** Undefined where it has no schema. */
  readonly query: Context["query"] | undefined;
  /** The body where it was read. */
  readonly bytes: Buffer | undefined;
}

interface Limits
  extends Pick<Input, "params">, Pick<WebRequestParts, "maxBytes" | "authenticateAgain"> {
  readonly maxFormBytes: number;
}

type Taking = Pick<LoadedEndpoint, "input" | "takesForms" | "idempotent">;

/**
 * Reads what an endpoint takes; a promise only where there is something to wait for. Rejects with
 * Problem 400 that lists every error, 413 or 415.
 */
export function readInput(
  endpoint: Taking,
  request: HttpRequest,
  limits: Limits,
): Input | Promise<Input> {
  if (hasSchema(endpoint) || hasBody(request)) return readAndCheck(endpoint, request, limits);
  return { params: limits.params, query: undefined, body: undefined, bytes: undefined };
}

const hasSchema = ({ input }: Taking) => input.params ?? input.query ?? input.body;

async function readAndCheck(
  endpoint: Taking,
  request: HttpRequest,
  { params, maxBytes, maxFormBytes, authenticateAgain }: Limits,
): Promise<Input> {
  const { input, takesForms, idempotent } = endpoint;
  const takes = { takesForms, takesOthers: !input.body, readsAll: idempotent };
  const { value: body, bytes } = await readAnyBody(request, { maxBytes, maxFormBytes, ...takes });
  if (bytes) await authenticateAgain();
  if (!hasSchema(endpoint)) return { params, query: undefined, body, bytes };

  const found: (FieldError & { readonly part: string })[] = [];
  const parse = (part: string, shape: Shape<unknown>, value: unknown): unknown =>
    shape.parse(value, (detail, pointer = "") => {
      if (found.length < LIST_LIMIT) found.push({ part, pointer, detail });
    });
  // Their types are those of the schemas, as the handler knows them.
  const parsed = {
    params: input.params ? await parse("path", input.params, Object.entries(params)) : params,
    query: input.query && await parse("query", input.query, parseFields(request.query, "query")),
    body: input.body
      ? await parse("body", body instanceof URLSearchParams ? input.body.form : input.body, body)
      : body,
  } as Pick<Input, "params" | "query" | "body">;

  // Pointers are those of each part: where several are wrong, each detail says of which it is.
  const [first = "", ...others] = new Set(found.map(({ part }) => part));
  const isOne = others.length === 0;
  const errors = found.map(({ part, pointer, detail }) =>
    ({ pointer, detail: isOne ? detail : `In the ${part}: ${detail}` })
  );
  checkErrors(errors, isOne ? first : "request");
  return { ...parsed, bytes };
}
