import type { HttpRequest } from "../base/http_message.ts";
import { expressible, type LogFields, toFields } from "../base/log.ts";
import { isPlainObject } from "../base/plain_object.ts";
import type { Caller, Context, Logger } from "../mod.ts";
import type { Input } from "./input.ts";
import { findRefusal } from "./refusal.ts";
import { toWebRequest, type WebRequestParts } from "./web_request.ts";

/** The parts of a context beside the request and its input. */
type ContextParts = WebRequestParts & Pick<Context, "caller" | "dispatch" | "log">;

/**
 * The context of a handler. Costly members are made when they are first read. A class has their
 * getters on a prototype: in an object literal they cost more than the rest of a request.
 */
class RequestContext implements Context<unknown> {
  readonly params: Context["params"];
  readonly body: unknown;
  readonly caller: Caller | undefined;
  readonly dispatch: Context["dispatch"];
  readonly requestId: string;
  readonly #http: HttpRequest;
  readonly #bytes: Buffer | undefined;
  readonly #parts: ContextParts;
  #query: URLSearchParams | undefined;
  #request: Request | undefined;
  #log: Logger | undefined;

  constructor(http: HttpRequest, { params, query, body, bytes }: Input, parts: ContextParts) {
    this.params = params;
    this.body = body;
    this.caller = parts.caller;
    this.dispatch = parts.dispatch;
    this.requestId = http.id;
    this.#query = query;
    this.#http = http;
    this.#bytes = bytes;
    this.#parts = parts;
  }

  get signal(): AbortSignal {
    return this.#http.signal;
  }

  get query(): URLSearchParams {
    return this.#query ??= new URLSearchParams(`?${this.#http.query}`);
  }

  get request(): Request {
    return this.#request ??= toWebRequest(this.#http, this.#bytes, this.#parts);
  }

  get address(): string {
    return this.#http.address;
  }

  get log(): Logger {
    return this.#log ??= withFields(this.#parts.log, { request_id: this.requestId });
  }
}

/** Members of the prototype; a copy of the context has them too. */
const MADE_WHEN_READ = ["query", "request", "signal", "log", "address"] as const;

/** Makes copies whole, as accessors on each object would do at seven times the cost. */
const COPIED_WHOLE: ProxyHandler<RequestContext> = {
  // The receiver must not be the proxy, which has no private fields.
  get: (target, name) => Reflect.get(target, name),
  ownKeys: (target) => [...new Set([...Reflect.ownKeys(target), ...MADE_WHEN_READ])],
  getOwnPropertyDescriptor(target, key) {
    const name = MADE_WHEN_READ.find((each) => each === key);
    if (name === undefined) return Reflect.getOwnPropertyDescriptor(target, key);
    return { value: target[name], enumerable: true, configurable: true };
  },
};

/** Makes the context of a handler. A copy of the context has every member. */
export function createContext(
  http: HttpRequest,
  input: Input,
  parts: ContextParts,
): Context<unknown> {
  return new Proxy(new RequestContext(http, input, parts), COPIED_WHOLE);
}

/** Adds the result of a `before`. Throws a refusal or Error, or TypeError for a wrong result. */
export function addToContext(context: Context<unknown>, added: unknown): void {
  if (added === undefined) return;
  if (added instanceof Error) throw added;
  if (!isPlainObject(added)) throw new TypeError("before() must return an object or nothing.");
  // A result with a status was meant to end the request, which must not go on.
  if ("status" in added) {
    throw findRefusal(added) ?? new TypeError("before() may refuse, but not respond.");
  }
  const known = Object.keys(added).find((name) => name in context);
  if (known !== undefined) throw new TypeError(`before() adds "${known}", which the context has.`);
  Object.assign(context, added);
}

/** Returns a log that adds these fields to every line, in place of fields of the same name. */
export function withFields(log: Logger, own: LogFields): Logger {
  const at = (write: Logger["info"]): Logger["info"] => (message, fields = {}) => {
    try {
      write(message, { ...toFields(fields), ...own });
    } catch { // thrown by a getter
      write(message, { ...expressible(fields), ...own });
    }
  };
  return { debug: at(log.debug), info: at(log.info), warn: at(log.warn), error: at(log.error) };
}
