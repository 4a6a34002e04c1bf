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
 * Makes an exchange try once more where its connection had been kept alive and breaks before the
 * first byte of a response. The other side was closing it when the request was sent. The request
 * may have been processed, so it must be one that may come twice (RFC 9110 §9.2.2), as a callback
 * with its `webhook-id` may.
 *
 * @param handler used by this exchange only; changed, since V8 makes a slow object of a prototype
 * @param isNew whether the connection of the exchange that starts now has just been made
 * @param again makes the exchange on a new connection; returns false where that cannot be
 */
export function trySecond(
  handler: ExchangeHandler,
  isNew: () => boolean,
  again: () => boolean,
): ExchangeHandler {
  const { onRequestStart, onResponseStarted, onResponseError } = handler;
  let mayTry = true; // nothing has been sent yet
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
