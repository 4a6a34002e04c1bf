import type { HttpRequest } from "../base/http_message.ts";
import type { Caller, Context, Logger } from "../mod.ts";
import { type RequestBody, toWebRequest } from "./request_body.ts";

/** What a context is made of beside the request and its body. */
export interface ContextParts extends Pick<Context, "params" | "caller" | "dispatch" | "log"> {
  readonly baseUrl: string;
  readonly maxBytes: number;
}

/**
 * What a handler gets. What costs something is made when it is first read. The getters stand on a
 * prototype, and so in a class, because in an object literal they cost more than the rest of a
 * request together.
 */
class RequestContext implements Context<unknown> {
  readonly params: Context["params"];
  readonly body: unknown;
  readonly caller: Caller | undefined;
  readonly dispatch: Context["dispatch"];
  readonly #http: HttpRequest;
  readonly #httpBody: RequestBody;
  readonly #parts: ContextParts;
  #query: URLSearchParams | undefined;
  #request: Request | undefined;
  #log: Logger | undefined;

  constructor(http: HttpRequest, httpBody: RequestBody, parts: ContextParts) {
    this.params = parts.params;
    this.body = httpBody.value;
    this.caller = parts.caller;
    this.dispatch = parts.dispatch;
    this.#http = http;
    this.#httpBody = httpBody;
    this.#parts = parts;
  }

  get signal(): AbortSignal {
    return this.#http.signal;
  }

  get query(): URLSearchParams {
    return this.#query ??= new URLSearchParams(this.#http.query);
  }

  get request(): Request {
    return this.#request ??= toWebRequest(this.#http, this.#httpBody, this.#parts);
  }

  get log(): Logger {
    return this.#log ??= withRequestId(this.#parts.log, this.#http.id);
  }
}

/** Makes the context of one request. */
export function createContext(
  http: HttpRequest,
  body: RequestBody,
  parts: ContextParts,
): Context<unknown> {
  return new RequestContext(http, body, parts);
}

function withRequestId(log: Logger, id: string): Logger {
  return {
    debug: (message, fields) => log.debug(message, { ...fields, request_id: id }),
    info: (message, fields) => log.info(message, { ...fields, request_id: id }),
    warn: (message, fields) => log.warn(message, { ...fields, request_id: id }),
    error: (message, fields) => log.error(message, { ...fields, request_id: id }),
  };
}
