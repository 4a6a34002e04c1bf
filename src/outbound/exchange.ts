import type { ExchangeHandler } from "./second_try.ts";

/** The handler that fetch gives to its dispatcher, as far as it matters here. */
export interface FetchHandler extends ExchangeHandler {
  /** The body that fetch reads, once the head of the response is there. */
  readonly body?: { on(event: "error", listener: () => void): unknown } | null;
  onRequestStart(controller: { abort(reason: Error): void }, context: unknown): void;
  /** Called for the head of a response, and before that for the head of each interim one (1xx). */
  onResponseStart(controller: unknown, status: number, ...head: unknown[]): void;
}

/** Interim responses cost a thread much and their sender little, and may never end. */
const MAX_INTERIM = 32;

/**
 * Follows an exchange of fetch by the handler for its dispatcher, which is changed as by
 * trySecond(). Fetch keeps some responses to itself: a 407; a 421, whose request it would send
 * again; one with more than five content encodings. It reads the body of a 205 without an end.
 * Without `end` the other side could hold their connections as long as it likes. Too many interim
 * responses end the exchange as a failure.
 */
export function followExchange() {
  let abort = () => {};
  let status: number | undefined;
  let interim = 0;
  return {
    follow(handler: FetchHandler): FetchHandler {
      const { onRequestStart, onResponseStart } = handler;
      status = undefined;
      return Object.assign(handler, {
        onRequestStart(controller, context) {
          abort = () => controller.abort(new DOMException("Nothing more is read", "AbortError"));
          onRequestStart.call(handler, controller, context);
        },
        onResponseStart(controller, code, ...head) {
          if (code >= 200) status = code;
          else if (++interim > MAX_INTERIM) {
            throw Object.assign(new Error("Too many interim responses"), { code: "INTERIM_LIMIT" });
          }
          onResponseStart.call(handler, controller, code, ...head);
          // Without a listener, as fetch may leave it, an error would end the thread.
          handler.body?.on("error", () => {});
        },
      } satisfies Pick<FetchHandler, "onRequestStart" | "onResponseStart">);
    },
    /** The status of the response, once its head has come. */
    status: () => status,
    /** Aborts the exchange, and its connection, where it is not complete. */
    end: () => abort(),
  };
}
