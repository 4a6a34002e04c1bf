import { classifyFailure } from "./failure.ts";

/** What undici's dispatchers report of one exchange, as far as it matters here. */
export interface ExchangeHandler {
  onRequestStart(controller: unknown, context: unknown): void;
  /** The first byte of a response is there. */
  onResponseStarted?(): void;
  onResponseEnd(controller: unknown, trailers: unknown): void;
  onResponseError(controller: unknown, error: Error): void;
}

/**
 * The handler of an exchange that is made once more where its connection had been kept alive and
 * breaks before the first byte of a response: the other side was closing it when the request was
 * sent. Whether the request has been processed is not known then, so it must be one that may come
 * twice (RFC 9110 §9.2.2), as a callback with its `webhook-id` may.
 *
 * @param handler of this exchange alone; it is changed, since V8 makes a slow object of a prototype
 * @param isNew whether the connection of the exchange that starts now has just been made
 * @param again makes the exchange on a new connection; false where that cannot be
 */
export function trySecond(
  handler: ExchangeHandler,
  isNew: () => boolean,
  again: () => boolean,
): ExchangeHandler {
  const { onRequestStart, onResponseStarted, onResponseError } = handler;
  let mayTry = true; // it has not been sent
  return Object.assign(handler, {
    onRequestStart(controller, context) {
      mayTry &&= !isNew();
      onRequestStart.call(handler, controller, context);
    },
    onResponseStarted() {
      mayTry = false;
      onResponseStarted?.call(handler);
    },
    onResponseError(controller, error) {
      const isReset = mayTry && classifyFailure(error) === "reset";
      mayTry = false;
      if (!isReset || !again()) onResponseError.call(handler, controller, error);
    },
  } satisfies Partial<ExchangeHandler>);
}
