import type { HttpRequest } from "../base/http_message.ts";
import type { Caller, Context, Logger } from "../mod.ts";
import { toWebRequest, type WebRequestParts } from "./web_request.ts";

/** What a context is made of beside the request. */
type ContextParts = WebRequestParts &
  Pick<Context<unknown>, "params" | "body" | "caller" | "dispatch" | "log"> & {
    /** As its schema has it, where it has one. */
    readonly query: Context["query"] | undefined;
  };

/**
 * What a handler gets; costly members are made when they are first read. Their getters are on
 * a prototype, and so in a class: in an object literal they cost more than the rest of a request.
 */
export class RequestContext implements Context<unknown, Caller | undefined> {
  readonly params: Context["params"];
  readonly body: unknown;
  readonly caller: Caller | undefined;
  readonly dispatch: Context["dispatch"];
  readonly #http: HttpRequest;
  readonly #parts: ContextParts;
  #query: URLSearchParams | undefined;
  #request: Request | undefined;
  #log: Logger | undefined;

  constructor(http: HttpRequest, parts: ContextParts) {
    this.params = parts.params;
    this.body = parts.body;
    this.caller = parts.caller;
    this.dispatch = parts.dispatch;
    this.#query = parts.query;
    this.#http = http;
    this.#parts = parts;
  }

  get signal(): AbortSignal {
    return this.#http.signal;
  }

  get query(): URLSearchParams {
    return this.#query ??= new URLSearchParams(this.#http.query);
  }

  get request(): Request {
    return this.#request ??= toWebRequest(this.#http, this.#parts);
  }

  get address(): string {
    return this.#http.address;
  }

  get requestId(): string {
    return this.#http.id;
  }

  get log(): Logger {
    return this.#log ??= withRequestId(this.#parts.log, this.#http.id);
  }
}

function withRequestId(log: Logger, id: string): Logger {
  return {
    debug: (message, fields) => log.debug(message, { ...fields, request_id: id }),
    info: (message, fields) => log.info(message, { ...fields, request_id: id }),
    warn: (message, fields) => log.warn(message, { ...fields, request_id: id }),
    error: (message, fields) => log.error(message, { ...fields, request_id: id }),
  };
}
