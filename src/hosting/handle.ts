import { discardStream, type HttpResponse, type HttpRequest } from "../base/http_message.ts";
import { MAX_FORM_BYTES } from "../base/form.ts";
import { Problem } from "../base/problem.ts";
import type { Caller, Logger } from "../mod.ts";
import { isPlainObject, type LoadedEndpoint } from "./check.ts";
import { createContext } from "./context.ts";
import { collectEvents, type DispatchedEvent, type DispatchRules } from "./dispatch.ts";
import { readEndpointBody } from "./request_body.ts";
import { toResponse } from "./result.ts";

/** What answering for one endpoint needs from outside. */
export interface HandlerOptions extends DispatchRules {
  readonly endpoint: Pick<LoadedEndpoint, "method" | "pattern" | "maxBodyBytes" | "handle">;
  /** The largest request body, for endpoints that do not say their own. */
  readonly maxBodyBytes: number;
  /** The public address, without trailing slash: what the web Request's URL starts with. */
  readonly baseUrl: string;
  /** The headers of a 401 that a handler throws (RFC 9110 §15.5.2). */
  readonly challenge: Readonly<Record<string, string>>;
  readonly log: Logger;
  /** Stores all events durably, or none and throws. */
  commit(events: readonly DispatchedEvent[]): Promise<void>;
}

/**
 * Answers one request whose path the endpoint matches and whose caller may call it. Throws
 * Problem for everything that does not end in the handler's own answer.
 */
export type Handler = (
  request: HttpRequest,
  params: Readonly<Record<string, string>>,
  caller: Caller | undefined,
) => Promise<HttpResponse>;

const RETRY_AFTER = { "Retry-After": "2" };

/**
 * Returns the function that answers requests for one endpoint: reads the body, calls the handler,
 * stores its events and only then answers. The rules are told to authors in mod.ts.
 */
export function createHandler(options: HandlerOptions): Handler {
  const { endpoint, baseUrl, log } = options;
  const maxBytes = endpoint.maxBodyBytes ?? options.maxBodyBytes;
  const maxFormBytes = endpoint.maxBodyBytes ?? Math.min(maxBytes, MAX_FORM_BYTES);

  return async (request, params, caller) => {
    const body = await readEndpointBody(request, { maxBytes, maxFormBytes });
    const collector = collectEvents(options);
    let response: HttpResponse;
    try {
      const context = createContext(request, body, {
        params,
        caller: caller && pickCaller(caller),
        dispatch: collector.dispatch,
        log,
        baseUrl,
        maxBytes,
      });
      const result = await endpoint.handle(context);
      response = toResponse(result);
    } catch (error) {
      collector.close();
      if (request.isGone) throw error; // nobody is there to be answered, and nothing has failed
      throw toProblem(error, options.challenge, () => logFailure(options, request, error));
    }
    const events = collector.close();
    if (events.length > 0 && response.status < 500) await commitAll(events, response, request, options);
    return response;
  };
}

/** A caller as authors get it: what else the service knows of the token stays here. */
function pickCaller({ sub, kind, clientId, scopes }: Caller): Caller {
  return { sub, kind, clientId, scopes };
}

async function commitAll(
  events: readonly DispatchedEvent[],
  response: HttpResponse,
  request: HttpRequest,
  { commit, log, endpoint }: HandlerOptions,
): Promise<void> {
  try {
    await commit(events);
  } catch (cause) {
    if (response.body instanceof ReadableStream) discardStream(request, response.body);
    const route = routeOf(endpoint);
    log.error("events not stored", { request_id: request.id, route, error: cause });
    throw new Problem(503, "unavailable", "Its events could not be stored; none was.", {
      headers: RETRY_AFTER,
      cause,
    });
  }
}

/** Only a refusal that the author wrote, or one of the service's own, tells the caller anything. */
function toProblem(
  error: unknown,
  challenge: HandlerOptions["challenge"],
  onFailure: () => void,
): Problem {
  if (error instanceof Problem) return error;
  if (isPlainObject(error)) {
    const { status, detail } = error;
    if (typeof status === "number" && Number.isInteger(status) && status >= 400 && status < 500) {
      const headers = status === 401 ? challenge : status === 429 ? RETRY_AFTER : {};
      return refusal(status, typeof detail === "string" ? detail : undefined, headers);
    }
  }
  onFailure();
  return new Problem(500, "internal", "The request failed inside the service.", { cause: error });
}

function refusal(
  status: number,
  detail: string | undefined,
  headers: Readonly<Record<string, string>>,
): Problem {
  const { title } = new Problem(status, "refused", "");
  const code = title.toLowerCase().replace(/[^a-z]+/g, "_");
  return new Problem(status, code, detail ?? title, { headers });
}

function logFailure({ endpoint, log }: HandlerOptions, request: HttpRequest, error: unknown): void {
  log.error("endpoint failed", { request_id: request.id, route: routeOf(endpoint), error });
}

function routeOf({ method, pattern }: HandlerOptions["endpoint"]): string {
  return `${method} ${pattern.text}`;
}
